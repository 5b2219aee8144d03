"""What the player's own choices cost the kernel, and what they are worth to who is up."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from luckbase import solver
from luckbase.jobs import terminal
from luckbase.solver import dense, sentences
from luckbase.solver.game.arrays import Floats
from luckbase.solver.games.press_your_luck.layout import Planes
from luckbase.solver.games.press_your_luck.tiers import Tier
from tests.places import BOARDS

NAMES = ("1985-02", "1985-02-double", "1984-06", "1984-06-double")
TURNS = 3


def choosing_suite(board: Path, results: Path) -> None:
    """Each board of the show with random and best choices: tables of two spins, $500. The best
    time of `TURNS`, which all tables take in turn."""
    layouts = {
        (name, choices): planes_of(name, choices=choices, score_unit=500, frontier=2)
        for name in NAMES
        for choices in ("random", "best")
    }
    rows = {key: sum(map(layout.rows, layout.tiers())) for key, layout in layouts.items()}
    times = dict.fromkeys(layouts, float("inf"))
    tables = {}
    for layout in layouts.values():
        layout.compile()
    for _ in range(TURNS):
        for key, layout in layouts.items():
            tables.pop(key, None)
            started = time.process_time()
            tables[key] = dense.InMemory(layout)
            times[key] = min(times[key], (time.process_time() - started) / rows[key] * 1e9)
    heads = ("board", "choices", "states", "ns a state", "against its random")
    terminal.print_table(
        f"Kernel, one core, the best of {TURNS}", heads,
        [
            (*key, sentences.count(rows[key]), f"{t:.1f}", f"{t / times[key[0], 'random']:.2f}")
            for key, t in times.items()
        ],
        sys.stdout,
    )  # fmt: skip
    gains = [
        (name, *row)
        for name in NAMES
        for row in worth_of_choosing(tables[name, "random"], tables[name, "best"])
    ]
    heads = ("board", "spins", "mean, pp", "pp", "at most", "pp", "at least", "worse off")
    terminal.print_table("Who is up gains by choices", heads, gains, sys.stdout)


def planes_of(name: str, **settings: object) -> Planes:
    """The layout of a board of the show."""
    found = solver.load_board(BOARDS / f"press-your-luck/{name}.toml", **settings)
    layout = solver.load_layout(found)
    assert isinstance(layout, Planes)
    return layout


def worth_of_choosing(
    chance: dense.InMemory[Tier], best: dense.InMemory[Tier]
) -> Iterator[tuple[str, ...]]:
    """What who is up gains where all may choose, by spins left: the mean, the most and the least
    with its state, and in what share of states it is a loss."""
    layout = best.layout
    for spins in sorted({tier.spins for tier in layout.tiers()}):
        here = [tier for tier in layout.tiers() if tier.spins == spins]
        gains = [_gain(chance, best, tier) for tier in here]
        ends = []
        for pick in (np.argmax, np.argmin):
            at = [int(pick(gain)) for gain in gains]
            k = int(pick([gain[x] for gain, x in zip(gains, at, strict=True)]))
            state = layout.game.say(layout.states_at(here[k], np.array(at[k : k + 1]))[0])
            ends += [f"{100 * gains[k][at[k]]:.2f}", state]
        every = np.concatenate(gains)
        yield (
            str(spins),
            f"{100 * every.mean():.3f}",
            *ends,
            f"{100 * (every < -1e-9).mean():.0f} %",
        )


def _gain(chance: dense.InMemory[Tier], best: dense.InMemory[Tier], tier: Tier) -> Floats:
    """(rows,) of the player up."""
    layout = best.layout
    by_slot = (best.payoffs[tier] - chance.payoffs[tier]).reshape(2, -1)
    by_slot = np.stack([*by_slot, -by_slot.sum(axis=0)])
    assert isinstance(layout, Planes)
    slots = tier.slots(layout.most)
    up = layout.acting_rows(tier, 0, layout.rows(tier)) - 1
    found = np.zeros(len(up))
    for slot, player in enumerate(slots):
        found[up == player] = by_slot[slot, up == player]
    return found
