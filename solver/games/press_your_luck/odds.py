"""What one spin of Press Your Luck brings, in dollars: as the board has it, and as it is solved."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

from luckbase.solver.board.model import canonical
from luckbase.solver.errors import OptionError
from luckbase.solver.game.game import Game
from luckbase.solver.game.odds import SIGNED, Fact, Odds
from luckbase.solver.games.press_your_luck.board import PressYourLuckBoard, outcome_distribution
from luckbase.solver.sentences import many, setting

MOST_DIGITS = 9
"""Of a number in a chance of [outcomes]."""

Won = tuple[tuple[Fraction, bool, Fraction], ...]
"""(dollars, plus a spin, chance) of every outcome but the whammy."""


def odds(game: Game) -> Odds:
    """The facts and the outcomes of the board's spin."""
    board = game.board
    assert isinstance(board, PressYourLuckBoard)
    written = tuple(
        (Fraction(board.dollars(leaf.slide)), leaf.slide.spin, leaf.chance)
        for leaf in board.leaves()
        if leaf.slide.kind != "whammy"
    )
    spin, unit = outcome_distribution(board), board.solve.score_unit
    solved = tuple(
        (Fraction(units * unit), again, chance)
        for again, kind in ((False, spin.money), (True, spin.spin))
        for units, chance in kind
    )
    named = [("whammy", spin.whammy)] if spin.whammy else []
    named += [(f"{dollars}{' + spin' * again}", chance) for dollars, again, chance in solved]
    moved = sum((_moved(written, solved, again) for again in (False, True)), Fraction(0))
    return Odds(
        _facts(written), _facts(solved), tuple(named), Fact("moved a spin", moved, "$"),
        lambda: board_file(board, named),
    )  # fmt: skip


def _facts(won: Won) -> tuple[Fact, ...]:
    money = [(dollars, chance) for dollars, again, chance in won if not again]
    spin = [(dollars, chance) for dollars, again, chance in won if again]
    either = money + spin
    kept = sum((chance for _, chance in either), Fraction(0))
    return (
        Fact("whammy", 1 - kept),
        Fact("money", sum((chance for _, chance in money), Fraction(0))),
        Fact("money plus a spin", sum((chance for _, chance in spin), Fraction(0))),
        Fact("mean money without a spin", _mean(money), "$"),
        Fact("mean money plus a spin", _mean(spin), "$"),
        Fact("mean money of either", _mean(either), "$"),
        Fact("its standard deviation", _deviation(either), "$"),
        Fact("won a spin, a whammy counting 0", _mean(either) * kept, "$"),
    )


def _mean(amounts: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    """The mean dollars, 0 of none."""
    chance, total = Fraction(0), Fraction(0)
    for dollars, weight in amounts:
        chance, total = chance + weight, total + dollars * weight
    return total / chance if chance else total


def _deviation(amounts: list[tuple[Fraction, Fraction]]) -> Fraction:
    mean = _mean(amounts)
    return Fraction(float(_mean([((d - mean) ** 2, chance) for d, chance in amounts])) ** 0.5)


def _moved(one: Won, other: Won, spin: bool) -> Fraction:
    """Wasserstein's distance: the area between the distribution functions, in dollars."""
    steps: dict[Fraction, Fraction] = {}
    for sign, won in ((1, one), (-1, other)):
        for dollars, again, chance in won:
            if again == spin:
                steps[dollars] = steps.get(dollars, Fraction(0)) + sign * chance
    area = height = Fraction(0)
    for (here, step), (after, _) in pairwise(sorted(steps.items())):
        height += step
        area += abs(height) * (after - here)
    return area


def board_file(board: PressYourLuckBoard, outcomes: Iterable[tuple[str, Fraction]]) -> str:
    """The text of a board file that lists these outcomes, its options as the board's.

    Raises OptionError for chances with more digits than a file takes.
    """
    listed = list(outcomes)
    digits = max(len(str(n)) for _, chance in listed for n in chance.as_integer_ratio())
    if digits > MOST_DIGITS:
        raise OptionError(
            f"board {board.name}: its chances have {digits} digits, and a file takes {MOST_DIGITS};"
            f" solve it with {setting('outcomes', len(listed))} in place of a file"
        )
    form = canonical(board)
    form["solve"]["outcomes"] = "all"
    lines = [f"# {board.name} with {many(len(listed), 'outcome')}, {SIGNED}", ""]
    lines += [f'game = "{board.game}"', f"title = {_toml(board.title)}", "", "[outcomes]"]
    lines += [f'"{name}" = "{chance}"' for name, chance in listed]
    for section in ("rules", "solve"):
        lines += ["", f"[{section}]"]
        lines += [f"{key} = {_toml(value)}" for key, value in form[section].items()]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    """A value as TOML has it: the same as JSON for texts, truth values and whole numbers."""
    import json

    return json.dumps(value)
