"""What playing for money changes: at what lead to pass, for the win and for dollars.

    python -m tests.bench.money

February 1985 in units of $1,000, one or two spins left, all the player's own: player 2 is up,
player 1 has nothing, player 3 gets the spins. Every lead below the cap is searched, exactly.
"""

from __future__ import annotations

import numpy as np

from luckbase.cluster.table.table import search_in_memory
from luckbase.solver import load_board, load_game

UNIT, CAP = 1000, 20_000
BOARD = "boards/press-your-luck/1985-02.toml"
OBJECTIVES = {
    "win": {"objective": "win"},
    "money": {"objective": "money"},
    "a win for $10,000 and money": {"objective": "win+money", "win_value": 10_000},
}


def passes(spins: int, rival: int, **rules: object) -> list[int]:
    """The leads in dollars at which passing is best."""
    game = load_game(load_board(BOARD, score_unit=UNIT, **rules))
    words = [{"scores": (0, own, rival), "earned": (0, spins, 0)} for own in range(0, CAP, UNIT)]
    states = np.array([game.parse(each) for each in words])
    best = search_in_memory(game, states).stored_best(states)
    return [each["scores"][1] - rival for each, name in zip(words, best, strict=True)
            if str(name).startswith("pass")]  # type: ignore[index]  # fmt: skip


def spans(leads: list[int]) -> str:
    """``-7,000 to -4,000, from 3,000``."""
    runs = np.split(leads, np.flatnonzero(np.diff(leads) > UNIT) + 1) if leads else []
    return ", ".join(f"{run[0]:,} to {run[-1]:,}" for run in runs) or "never"


def main() -> None:
    """Print the table."""
    print(f"{'spins':>5}  {'rival':>6}  {'plays for':28} passes at these leads")
    for spins in (1, 2):
        for rival in (3000, 6000, 10_000):
            for name, rules in OBJECTIVES.items():
                print(f"{spins:5}  {rival:6,}  {name:28} {spans(passes(spins, rival, **rules))}")


if __name__ == "__main__":
    main()
