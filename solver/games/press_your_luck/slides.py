"""The slides of a Press Your Luck board file: what each may be, and reading [squares], [outcomes].

1400                        dollars; the spin is used
"3000 + spin"               dollars, and the spin comes back as an earned one
"prize", "prize + spin"     worth the board's `prize_value`
"whammy"                    the score is lost; the spin is used
"go back 2", "advance 2"    to another square, counted around the board
"move one"                  to either neighbour
"pick a corner"             to one of [places] corners, never the square itself
"big bucks", "across"       to the square given in [places]
"double", "double + spin"   the score again                          (not solved yet)
"2000 or lose a whammy"     dollars, or one whammy taken away        (not solved yet)
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from luckbase.solver.board.model import Location, mistake
from luckbase.solver.sentences import nearest, show

SQUARES = 18
SLIDES = 3
MAX_DOLLARS = 1_000_000  # an amount beyond this is a typing mistake
MAX_OUTCOMES = 200  # listed in [outcomes]; a board of squares has at most 54

_PLAIN = ("prize", "whammy", "double", "move one", "pick a corner", "big bucks", "across")
_WITH_SPIN = ("prize", "double")
_MOVES = {"go back", "advance", "move one", "pick a corner", "big bucks", "across"}
_WORDS = (*_PLAIN, *(f"{kind} + spin" for kind in _WITH_SPIN), "go back 2", "advance 2")
_RIGHT = f"write whole dollars up to {MAX_DOLLARS}, 'N + spin', 'prize', 'whammy', 'move one' …"


@dataclass(frozen=True, order=True)
class Slide:
    """One slide, or one outcome of [outcomes]; `str` gives it as the file has it."""

    kind: str  # one of _PLAIN, or money, money or lose a whammy, go back, advance
    number: int = 0  # dollars of the two money kinds, squares of "go back" and "advance", else 0
    spin: bool = False  # whether the spin comes back

    def __str__(self) -> str:
        if self.kind.startswith("money"):
            text = f"{self.number}{self.kind.removeprefix('money')}"
        else:
            text = f"{self.kind} {self.number}" if self.number else self.kind
        return text + " + spin" * self.spin

    @property
    def moves(self) -> bool:
        """Whether the slide only leads to another square."""
        return self.kind in _MOVES


def read_slide(written: object) -> Slide:
    """The slide for what stands in the file, a whole number or text; spaces and case do not matter.

    Raises ValueError with a sentence.
    """
    if isinstance(written, bool) or not isinstance(written, int | str):
        raise ValueError(f"{show(written)} is not a slide; {_RIGHT}")
    if isinstance(written, int):
        text = str(written) if 0 <= written <= MAX_DOLLARS else "out of range"
    else:
        text = re.sub(r" ?\+ ?", " + ", " ".join(written.lower().split()))
    base = text.removesuffix(" + spin")
    spin = base != text
    if base in _PLAIN and (not spin or base in _WITH_SPIN):
        return Slide(base, 0, spin)
    if re.fullmatch(r"[0-9]{1,7}", base) and int(base) <= MAX_DOLLARS:
        return Slide("money", int(base), spin)
    found = re.fullmatch(r"([0-9]{1,7}) or lose a whammy", text)
    if found and int(found[1]) <= MAX_DOLLARS:
        return Slide("money or lose a whammy", int(found[1]))
    if found := re.fullmatch(r"(go back|advance) ([0-9]{1,2})", text):
        if 1 <= int(found[2]) < SQUARES:
            return Slide(found[1], int(found[2]))
        raise ValueError(f"{show(written)} must go from 1 to {SQUARES - 1} squares")
    meant = nearest(text, _WORDS)
    hint = meant if meant.startswith("did you mean") else _RIGHT
    raise ValueError(f"{show(written)} is not a slide; {hint}")


Squares = tuple[tuple[Slide, ...], ...]  # 18 of 3; square n stands at n - 1
Chances = tuple[tuple[Slide, Fraction], ...]  # in the order of Slide


def read_squares(section: object) -> Squares:
    """The squares from the file's [squares]. Raises a mistake naming the square and the slide."""
    if not isinstance(section, Mapping):
        raise mistake(f"{show(section)} is not a section; write [squares] and 1 = [...] below it")
    numbers = [str(n) for n in range(1, SQUARES + 1)]
    for key in section:
        if key not in numbers:
            raise mistake(f"{show(key)} is not a square; they are 1 to {SQUARES}", "squares")
    missing = [number for number in numbers if number not in section]
    if missing:
        verb = "are" if len(missing) > 1 else "is"
        said = f"{', '.join(missing)} {verb} missing; a board has squares 1 to {SQUARES}"
        raise mistake(said, "squares")
    squares = []
    for number in numbers:
        slides = section[number]
        if not isinstance(slides, list | tuple):
            said = f"{show(slides)} is not a list of {SLIDES} slides such as [1400, 1750, 2250]"
            raise mistake(said, "squares", number)
        if len(slides) != SLIDES:
            said = f"has {len(slides)} slides and must have {SLIDES}"
            raise mistake(said, "squares", number)
        where: tuple[Location, ...] = tuple(("squares", number, i) for i in range(SLIDES))
        squares.append(tuple(map(_slide_at, slides, where)))
    return tuple(squares)


def read_chances(section: object) -> Chances:
    """The outcomes from the file's [outcomes]. Raises a mistake naming the outcome."""
    if not isinstance(section, Mapping) or not section:
        said = f"{show(section)} is not a section" if section != {} else "is empty"
        raise mistake(f'{said}; write [outcomes] and lines such as "whammy" = "1/6" below it')
    if len(section) > MAX_OUTCOMES:
        raise mistake(f"{len(section)} are too many; the most is {MAX_OUTCOMES}", "outcomes")
    chances: dict[Slide, Fraction] = {}
    for key, written in section.items():
        slide = _slide_at(key, ("outcomes", key))
        if slide.moves:
            said = "leads to another square, and a board of outcomes has no squares"
            raise mistake(said, "outcomes", key)
        if slide in chances:
            raise mistake(f"'{slide}' stands there twice", "outcomes")
        chances[slide] = _chance(written, ("outcomes", key))
    total = sum(chances.values())
    if total != 1:
        raise mistake(f"the chances sum to {show(total)}, not to 1", "outcomes")
    return tuple(sorted(chances.items()))


def _slide_at(written: object, at: Location) -> Slide:
    try:
        return read_slide(written)
    except ValueError as error:
        raise mistake(str(error), *at) from None


def _chance(written: object, at: Location) -> Fraction:
    """A chance from the file: a fraction as text, or the whole number 1."""
    text = str(written) if written == 1 and type(written) is int else written
    found = isinstance(text, str) and re.fullmatch(r" *([0-9]{1,9})( */ *([0-9]{1,9}))? *", text)
    if not found or (found[3] and int(found[3]) == 0):
        raise mistake(f'{show(written)} is not a chance; write a fraction such as "1/6"', *at)
    chance = Fraction(int(found[1]), int(found[3] or 1))
    if not 0 < chance <= 1:
        raise mistake(f"{show(written)} is not a chance above 0 and up to 1", *at)
    return chance


def squares_as_written(squares: Squares | None) -> dict[str, list[int | str]] | None:
    """[squares] of the canonical form."""
    if squares is None:
        return None
    return {
        str(number): [s.number if str(s).isdecimal() else str(s) for s in slides]
        for number, slides in enumerate(squares, start=1)
    }


def chances_as_written(chances: Chances | None) -> dict[str, str] | None:
    """[outcomes] of the canonical form."""
    return None if chances is None else {str(slide): str(chance) for slide, chance in chances}


def around(square: int) -> int:
    """The number of a square counted past either end: 0 is 18, 19 is 1."""
    return (square - 1) % SQUARES + 1
