"""How far a rough table is from a good one, against a slow way over every state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import luckbase
from luckbase.cluster.table.table import Table
from tests.bench.apart import Apart, apart, together

TEXT = """
game = "press-your-luck"
[outcomes]
"whammy" = "1/4"
"500" = "1/4"
"2000" = "1/4"
"500 + spin" = "1/8"
"1500 + spin" = "1/8"
[rules]
max_whammies = 1
[solve]
score_unit = 500
score_cap = 3000
frontier = 2
"""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, Table]:
    path: Path = tmp_path_factory.mktemp("apart") / "small.toml"
    path.write_text(TEXT)
    good = luckbase.open(path, in_memory=True)
    return good, luckbase.open(path, in_memory=True, outcomes="5", score_unit=1000)


def test_a_table_is_not_apart_from_itself(tables: tuple[Table, Table]) -> None:
    good, _ = tables
    for one in apart(good, good, good.draw(good.rows, 0)).values():
        assert (one.mean, one.most, one.others, one.cost) == (0, 0, 0, 0)


def test_every_number_is_that_of_a_walk_over_the_answers(tables: tuple[Table, Table]) -> None:
    """One spin left, the states of the coarser grid, asked one by one."""
    good, rough = tables
    found = apart(good, rough, good.draw(good.rows, 0))
    assert [*found] == [1, 2]
    gaps, costs = [], []
    for piece in good.draw(good.rows, 0):
        for state in piece[piece[:, 3:9].sum(axis=1) == 1]:
            words = good.game.describe(state)
            if any(score % 1000 for score in words["scores"]):
                continue
            one, other = good[words], rough[words]
            gaps.append(max(abs(a - b) for a, b in zip(one.value, other.value, strict=True)))
            if len(one.actions) > 1:
                assert one.to_act is not None
                own = {action.name: action.value[one.to_act - 1] for action in one.actions}
                costs.append(max(own.values()) - own[str(other.best)])
    costs = [cost if cost > good.tolerance else 0.0 for cost in costs]
    said = found[1]
    assert (said.states, said.decisions) == (len(gaps), len(costs))
    assert said.others == sum(cost > 0 for cost in costs) > 0
    assert said.mean == pytest.approx(np.mean(gaps), abs=1e-6)
    assert said.most == pytest.approx(max(gaps), abs=1e-6)
    assert said.high == pytest.approx(np.quantile(gaps, 0.99), abs=1e-6)
    assert said.cost == pytest.approx(np.mean(costs), abs=1e-6)
    assert said.most_cost == pytest.approx(max(costs), abs=1e-6)


def test_levels_together_count_by_their_states() -> None:
    two = Apart(10, 0.1, 0.2, 0.3, 4, 1, 0.01, 0.02), Apart(30, 0.3, 0.1, 0.5, 0, 0, 0.0, 0.0)
    assert together(two) == Apart(40, pytest.approx(0.25), 0.2, 0.5, 4, 1, 0.01, 0.02)
