"""When to pass, from the whole show: a page of markdown from a table of decisions.

    python -m tests.bench.passing TABLE [GAMES] > results/published/press-your-luck-passing.md

The player up is player 2, all spins left are theirs, player 3 is the rival, player 1 the third.
Rounds begin as the board says (`[start]`), where the table reaches that far, and everybody does
what is stored; every decision is counted (`rounds`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.find import open_table
from luckbase.cluster.table.lookup import Lookup
from luckbase.cluster.table.table import Table
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.groups import groups_of
from luckbase.solver.game.rules import DECISION
from luckbase.solver.search.expand import classify, expand

RIVALS = (2000, 4000, 6000, 8000, 10_000, 12_000, 14_000)
GAMES = 20_000
LEADER, SECOND = "leader", "second"


def leads(table: Table, third: int) -> dict[tuple[int, int], Mapping[str, str]]:
    """The rows of the chart ``lead`` by spins and the rival's score."""
    rivals = ",".join(str(x) for x in RIVALS if x > third)
    fields = {"rival": rivals, "third": str(third)}
    chart = table.chart("lead", fields)
    names = [str(name) for name in chart.columns]
    found = [dict(zip(names, map(str, row), strict=True)) for row in chart.rows]
    return {(int(row["spins"]), int(row["rival_score"])): row for row in found}


def behind(row: Mapping[str, str]) -> str:
    """At what deficits the player up passes to who leads: ``4,000 to 5,000``, or nothing."""
    spans = [tuple(map(int, span.split(".."))) for span in row["passes"].split()]
    said = [(-min(b, -1), -a) for a, b in spans if a < 0]
    return ", ".join(f"{a:,} to {b:,}" if a < b else f"{a:,}" for a, b in said)


@dataclass(frozen=True)
class Rounds:
    """Rounds that were played. share: of all rounds, those that the table reaches. begins: int64
    (games,), spins in all; passes: how often one was passed; seats: (games, players), the share of
    the win. decisions: by spins left and place: how often somebody could choose, and passed."""

    share: float
    begins: Ints
    passes: Ints
    seats: NDArray[np.float64]
    decisions: Mapping[tuple[str, str], tuple[int, int]]


def rounds(table: Lookup, games: int, seed: int = 1) -> Rounds:
    """So many rounds from the starts that a table holds, in which everybody does what it says."""
    game, draw, groups = table.game, np.random.default_rng(seed), groups_of(table.game)
    chances, begins = zip(*game.starts(), strict=True)
    weights, states = np.array(chances), np.array(begins)
    kept = table.holds(states) | (states[:, 3:9].sum(axis=1) == 0)
    share = float(weights[kept].sum())
    at = states[kept][draw.choice(int(kept.sum()), games, p=weights[kept] / share)]
    spins = at[:, 3:9].sum(axis=1)
    passes, paid = np.zeros(games, np.int64), np.zeros((games, game.players))
    left, counts = np.arange(games), dict[tuple[str, str], list[int]]()
    while len(left):
        met, which, often = np.unique(at[left], axis=0, return_inverse=True, return_counts=True)
        which = which.reshape(-1)
        edges = expand(game, met)
        names = ["" if over else name for over, name in
                 zip(edges.terminal, table.stored_best(met), strict=True)]  # fmt: skip
        passed = np.array([str(name).startswith("pass") for name in names])
        group = classify(game, met, groups).groups
        for x in np.flatnonzero(group >= 0).tolist():
            label = groups.labels(int(group[x]))[:2]
            each = counts.setdefault((label[0], label[1]), [0, 0])
            each[0] += int(often[x])
            each[1] += int(often[x]) * int(passed[x])
        passes[left] += passed[which]
        # The actions by name, of the edges; where nobody chooses all of a state's edges count.
        known, coded = np.unique(edges.actions, return_inverse=True)
        called = [game.action_name(int(a)) if a >= 0 else "" for a in known]
        numbers = {name: i for i, name in enumerate(called)}
        owner = np.repeat(np.arange(len(met)), np.diff(edges.first))
        best = np.array([numbers.get(str(name), -1) for name in names])[owner]
        counted = edges.weights * ((best == coded.reshape(-1)) | (edges.kinds[owner] != DECISION))
        total = np.concatenate([[0.0], np.cumsum(counted)])
        low, high = total[edges.first[:-1]][which], total[edges.first[1:]][which]
        edge = np.searchsorted(total, low + draw.random(len(left)) * (high - low), "right") - 1
        over = edges.terminal[which]
        paid[left[over]] = edges.rewards[edges.first[:-1]][which[over]]
        at[left[~over]] = edges.children[edge[~over]]
        left = left[~over]
    found = {key: (a, b) for key, (a, b) in counts.items()}
    return Rounds(share, spins, passes, paid, found)


HEAD = """# Press Your Luck: when to pass

One page to print and take along. The player up is player 2 and holds all spins that are left,
player 3 is the rival, who gets them, player 1 is the third; nobody has a whammy. Of {0},
up to {1} spins; `python -m tests.bench.passing TABLE` prints it from a table of decisions.
Leads are one's own score less the rival's, below 0 from behind; – is: at no lead below the cap."""


def rows_of(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table of markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def page(table: Table, games: int) -> list[str]:
    """The lines of the page, without what a person says about it."""
    found = {third: leads(table, third) for third in (0, 2000, 4000, 6000)}
    every = sorted({spins for spins, _ in found[0]})
    rivals = [f"${x:,}" for x in RIVALS]

    def money(text: str) -> str:
        return f"{int(text):,}" if text else "–"

    played = rounds(table, games)
    lines = [*HEAD.format(table.origin, every[-1]).splitlines(), ""]
    lines += [*findings(found, every, played), "", "## At what lead to pass", ""]
    lines += rows_of(
        ["spins left", *rivals],
        [[str(n), *(money(found[0][n, x]["pass_from"]) for x in RIVALS)] for n in every],
    )
    lines += ["", "## With a third player who has money", ""]
    lines += rows_of(
        ["spins left", *(f"third ${x:,}" for x in found)],
        [[str(n), *(money(found[x][n, 8000]["pass_from"]) for x in found)] for n in every],
    )
    lines += ["", "## Passing to the leader, from behind", ""]
    lines += rows_of(
        ["spins left", *rivals],
        [[str(n), *(behind(found[0][n, x]) or "–" for x in RIVALS)] for n in every
         if any(behind(found[0][n, x]) for x in RIVALS)],
    )  # fmt: skip
    lines += ["", "## How often", "", f"{games:,} rounds, {100 * played.share:.1f}% of how rounds "
              "begin.", ""]  # fmt: skip
    lines += rows_of(
        ["spins at the start", "rounds", "without a pass", "passes a round", "first wins",
         "second", "third"],
        [_begun(played, n) for n in np.unique(played.begins).tolist()],
    )  # fmt: skip
    lines += [""]
    spins = sorted({int(n) for n, _ in played.decisions})
    lines += rows_of(
        ["spins left", "leader decides, a round", "and passes", "second decides", "and passes"],
        [[str(n), *(said for who in (LEADER, SECOND)
                    for said in _often(played, str(n), who, games))] for n in spins],
    )  # fmt: skip
    return lines


def _begun(played: Rounds, spins: int) -> list[str]:
    """The rounds that began with so many spins in all."""
    here = played.begins == spins
    passes, seats = played.passes[here], played.seats[here].mean(axis=0)
    shares = [f"{100 * (passes == 0).mean():.0f}%", f"{passes.mean():.2f}"]
    return [str(spins), f"{here.sum():,}", *shares, *(f"{x:.2f}" for x in seats)]


Leads = Mapping[tuple[int, int], Mapping[str, str]]
"""By spins and the rival's score, rows of the chart ``lead``."""


def findings(found: Mapping[int, Leads], every: Sequence[int], played: Rounds) -> list[str]:
    """The same in words."""
    alone = found[0]
    ends = {n: alone[n, 6000]["pass_from"] for n in every}
    said = [f"${int(end):,} with {n}" for n, end in ends.items() if end]
    never = [str(n) for n, end in ends.items() if not end]
    beyond = f"; with {', '.join(never)} at no lead below the cap" if never else ""
    lines = [f"* **Pass from so far ahead** (rival on $6,000): {', '.join(said)} left{beyond}."]
    both = [(alone[n, 8000]["pass_from"], found[6000][n, 8000]["pass_from"]) for n in every]
    gaps = [int(a) - int(b) for a, b in both if a and b]
    later = f", up to ${-min(gaps):,} later with others" if min(gaps) < 0 else ""
    lines.append(
        "* **The third player**: where they have $6,000 instead of nothing (rival on $8,000), pass "
        f"up to ${max(gaps):,} sooner with some numbers of spins{later}."
    )
    spans = [(n, r, behind(alone[n, r])) for n in every for r in RIVALS]
    just = [n for n, _, span in spans if span.startswith("1 to")]
    near = f"; with {just[0]} or more from just behind, too" if just else ", not from just behind"
    lines.append(
        "* **From behind** it is right to give the spins to the leader, and hope for a whammy, "
        f"where a table below says so{near}."
    )
    without, mean = 100 * (played.passes == 0).mean(), played.passes.mean()
    lines.append(
        f"* **How often**: in {without:.0f}% of the rounds that were played nobody passes; on "
        f"average somebody passes {mean:.2f} times a round."
    )
    return lines


def _often(played: Rounds, spins: str, who: str, games: int) -> tuple[str, str]:
    there, passed = played.decisions.get((spins, who), (0, 0))
    return f"{there / games:.3f}", f"{100 * passed / there:.1f}%" if there else "–"


if __name__ == "__main__":
    with open_table(sys.argv[1]) as opened:
        print("\n".join(page(opened, int(sys.argv[2]) if len(sys.argv) > 2 else GAMES)))
