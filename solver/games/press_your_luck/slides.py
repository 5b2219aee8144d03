"""The slides of a Press Your Luck board, as the file has them and as they are read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from luckbase.solver.board.model import Location, mistake
from luckbase.solver.sentences import many, nearest, show

SQUARES = 60
SLIDES = 6
MAX_SPINS = 9  # that one slide brings
MAX_DOLLARS = 1_000_000  # an amount beyond this is a typing mistake
MAX_OUTCOMES = 200  # listed in [outcomes]

_PLAIN = ("prize", "whammy", "double", "lose a whammy")
_LEADING = ("move one", "pick a corner", "big bucks", "across")
_WITH_SPINS = ("money", "prize", "double")
_WORDS = (*_PLAIN, *_LEADING, "prize + spin", "double + spin", "go back 2", "advance 2", "to 2, 5")
_RIGHT = f"write whole dollars up to {MAX_DOLLARS}, 'N + spin', 'prize', 'whammy', 'move one' …"


@dataclass(frozen=True, order=True)
class Slide:
    """One slide, or one outcome of [outcomes]; `str` gives it as the file has it."""

    kind: str  # one of _PLAIN or _LEADING, or money, money or lose a whammy, go back, advance, to
    number: int = 0  # dollars of the two money kinds, squares of "go back" and "advance", else 0
    spins: int = 0  # how many come back
    squares: tuple[int, ...] = ()  # that "to" offers

    def __str__(self) -> str:
        if self.kind.startswith("money"):
            text = f"{self.number}{self.kind.removeprefix('money')}"
        elif self.squares:
            text = f"to {', '.join(map(str, self.squares))}"
        else:
            text = f"{self.kind} {self.number}" if self.number else self.kind
        return text + ("", " + spin", f" + {many(self.spins, 'spin')}")[min(self.spins, 2)]

    @property
    def moves(self) -> bool:
        """Whether the slide only leads to another square."""
        return self.kind in (*_LEADING, "go back", "advance", "to")


def read_slide(written: object, at: Location = ()) -> Slide:
    """The slide for what stands in the file, a whole number or text; spaces and case do not matter.

    Raises a mistake at its location.
    """
    if isinstance(written, bool) or not isinstance(written, int | str):
        raise mistake(f"{show(written)} is not a slide; {_RIGHT}", *at)
    if isinstance(written, int):
        text = str(written) if 0 <= written <= MAX_DOLLARS else "out of range"
    else:
        text = re.sub(r" ?\+ ?", " + ", " ".join(written.lower().split()))
    brings = re.search(r" \+ ([0-9]{1,9}) spins?$", text)
    if brings and not 1 <= int(brings[1]) <= MAX_SPINS:
        said = f"brings {many(int(brings[1]), 'spin')}; expected 1 to {MAX_SPINS}"
        raise mistake(f"{show(written)} {said}", *at)
    slide = _paying(text) or _leading(text, written, at)
    if slide is None:
        meant = nearest(text, _WORDS)
        hint = meant if meant.startswith("did you mean") else _RIGHT
        raise mistake(f"{show(written)} is not a slide; {hint}", *at)
    return slide


def _paying(text: str) -> Slide | None:
    """The slide on which a spin can end; None for another one."""
    match = re.fullmatch(rf"(.*?)( \+ spin| \+ ([1-{MAX_SPINS}]) spins?)?", text)
    assert match is not None
    base, spins = match[1], int(match[3] or 1) if match[2] else 0
    if base in _PLAIN and (not spins or base in _WITH_SPINS):
        return Slide(base, 0, spins)
    if re.fullmatch(r"[0-9]{1,7}", base) and int(base) <= MAX_DOLLARS:
        return Slide("money", int(base), spins)
    money = re.fullmatch(r"([0-9]{1,7}) or lose a whammy", text)
    if money and int(money[1]) <= MAX_DOLLARS:
        return Slide("money or lose a whammy", int(money[1]))
    return None


def _leading(text: str, written: object, at: Location) -> Slide | None:
    """The slide that leads to another square; None for another one. Raises a mistake."""
    if text in _LEADING:
        return Slide(text)
    if match := re.fullmatch(r"(go back|advance) ([0-9]{1,2})", text):
        if 1 <= int(match[2]) < SQUARES:
            return Slide(match[1], int(match[2]))
        raise mistake(f"{show(written)} must go from 1 to {SQUARES - 1} squares", *at)
    if match := re.fullmatch(r"to ([0-9]{1,2}(?: ?, ?[0-9]{1,2})*)", text):
        numbers = [int(word) for word in match[1].split(",")]
        if len({*numbers}) < len(numbers):
            raise mistake(f"{show(written)} has one square twice", *at)
        return Slide("to", squares=tuple(sorted(numbers)))
    return None


Squares = tuple[tuple[Slide, ...], ...]  # square n stands at n - 1
Chances = tuple[tuple[Slide, Fraction], ...]  # in the order of Slide


def read_squares(section: object) -> Squares:
    """The squares from the file's [squares]. Raises a mistake naming the square and the slide."""
    if not isinstance(section, Mapping):
        raise mistake(f"{show(section)} is not a section; write [squares] and 1 = [...] below it")
    for key in section:
        if not re.fullmatch(r"[1-9][0-9]?", key) or int(key) > SQUARES:
            raise mistake(f"{show(key)} is not a square; they are 1 to {SQUARES}", "squares")
    numbers = [str(n) for n in range(1, max(map(int, section), default=0) + 1)]
    missing = [number for number in numbers if number not in section]
    if missing:
        said = f"{', '.join(missing)} {'are' if len(missing) > 1 else 'is'} missing"
        raise mistake(f"{said}; this board has squares 1 to {numbers[-1]}", "squares")
    if len(numbers) < 2:
        raise mistake("a board has 2 squares or more", "squares")
    squares = []
    for number in numbers:
        slides = section[number]
        if not isinstance(slides, list | tuple):
            said = f"{show(slides)} is not a list of slides such as [1400, 1750, 2250]"
            raise mistake(said, "squares", number)
        if not 1 <= len(slides) <= SLIDES:
            said = f"has {many(len(slides), 'slide')}; expected 1 to {SLIDES}"
            raise mistake(said, "squares", number)
        squares.append(
            tuple(read_slide(slide, ("squares", number, i)) for i, slide in enumerate(slides))
        )
    return tuple(squares)


def read_chances(section: object) -> Chances:
    """The outcomes from the file's [outcomes]. Raises a mistake naming the outcome."""
    if not isinstance(section, Mapping) or not section:
        said = f"{show(section)} is not a section" if section != {} else "is empty"
        raise mistake(f'{said}; write [outcomes] and lines such as "whammy" = "1/6" below it')
    if len(section) > MAX_OUTCOMES:
        raise mistake(f"{len(section)} are too many; expected at most {MAX_OUTCOMES}", "outcomes")
    chances: dict[Slide, Fraction] = {}
    for key, written in section.items():
        slide = read_slide(key, ("outcomes", key))
        if slide.moves:
            said = "leads to another square, and a board of outcomes has no squares"
            raise mistake(said, "outcomes", key)
        if slide in chances:
            raise mistake(f"'{slide}' is there twice", "outcomes")
        chances[slide] = read_chance(written, ("outcomes", key))
    total = sum(chances.values())
    if total != 1:
        raise mistake(f"the chances sum to {show(total)}, not to 1", "outcomes")
    return tuple(sorted(chances.items()))


def read_chance(written: object, at: Location, *, zero: bool = False) -> Fraction:
    """A chance from the file: a fraction as text, or the whole number 1; 0 where that may be."""
    text = str(written) if written in (0, 1) and type(written) is int else written
    match = isinstance(text, str) and re.fullmatch(r" *([0-9]{1,9})( */ *([0-9]{1,9}))? *", text)
    if not match or (match[3] and int(match[3]) == 0):
        raise mistake(f'{show(written)} is not a chance; write a fraction such as "1/6"', *at)
    chance = Fraction(int(match[1]), int(match[3] or 1))
    if not (zero or chance) or chance > 1:
        right = "from 0 to 1" if zero else "above 0 and up to 1"
        raise mistake(f"{show(written)} is not a chance {right}", *at)
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
