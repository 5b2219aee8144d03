"""Chance in Press Your Luck, in exact fractions: slides, outcomes of a spin, starts of a round.

Amounts are rounded, halves up, to units of `score_unit` dollars. With `outcomes = K`, at most K
outcomes replace the board's. The odds of a whammy and of plus a spin stay the same, and so does the
mean amount of either kind if it keeps at least two amounts. A kind with one amount has its mean,
rounded: with `outcomes = 3` a spin is a whammy, the mean amount, or the mean amount plus a spin.

Money and money plus a spin are coarsened separately. Given amounts x[i] with chances p[i] and kept
whole numbers of units y[1] < … < y[k], every chance moves to the next kept amount below or above
(below y[1] to y[1], above y[k] to y[k]). Of all ways to do so that keep the mean,

    sum of p[i] x[i]  =  sum of q[j] y[j],

the code takes the one with the least sum of chance times distance, the Wasserstein distance of the
two spins. No search is needed: with r[i] = (x[i] - below) / (above - below), amounts go up in
descending order of r until the mean is reached, and one of them is split. (A chance p that goes up
and not down adds p (above - below) to the mean, and p (above - below) (1 - 2 r) to the distance.)

Money plus a spin is at least one unit, because a game that pays 0 and returns the spin would never
end. If amounts below a unit had to be raised to it, chance from the next amounts moves down to it.

At first all whole units next to an amount are kept. Then units are dropped one by one, each time
the unit whose removal moves least.

The result determines payoffs, but only `outcomes = K` is in the rules identity. So a change that
gives another spin for the same board must raise the rules' version.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise, product
from math import ceil, floor, lcm
from typing import Annotated, Any, NamedTuple, Self, TypeVar

from pydantic import Field, PlainSerializer, PlainValidator, StrictInt, model_validator

from luckbase.solver.board.model import Location, Section, mistake
from luckbase.solver.sentences import many, nearest, show

SQUARES = 60
SLIDES = 6
MAX_BROUGHT = 9  # spins that one slide brings
MAX_DOLLARS = 1_000_000  # an amount beyond this is a typing mistake
MAX_OUTCOMES = 200  # in [outcomes]

_PLAIN = ("prize", "whammy", "double", "lose a whammy")
_LEADING = ("move one", "pick a corner", "big bucks", "across")
_WITH_SPINS = ("money", "prize", "double")
_WORDS = (*_PLAIN, *_LEADING, "prize + spin", "double + spin", "go back 2", "advance 2", "to 2, 5")
_RIGHT = f"write whole dollars up to {MAX_DOLLARS}, 'N + spin', 'prize', 'whammy', 'move one' …"


@dataclass(frozen=True, order=True)
class Slide:
    """One slide, or one outcome of [outcomes]; `str` returns it as the file has it."""

    kind: str  # one of _PLAIN or _LEADING, or money, money or lose a whammy, go back, advance, to
    number: int = 0  # dollars of the two money kinds, squares of "go back" and "advance", else 0
    spins: int = 0  # spins that it brings
    squares: tuple[int, ...] = ()  # squares that "to" offers

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


def read_slide(written: object, location: Location = ()) -> Slide:
    """Return the slide for a value of the file, a number or text; spaces and case do not matter.

    Raises a mistake at its location.
    """
    if isinstance(written, bool) or not isinstance(written, int | str):
        raise mistake(f"{show(written)} is not a slide; {_RIGHT}", *location)
    if isinstance(written, int):
        text = str(written) if 0 <= written <= MAX_DOLLARS else "out of range"
    else:
        text = re.sub(r" ?\+ ?", " + ", " ".join(written.lower().split()))
    brings = re.search(r" \+ ([0-9]{1,9}) spins?$", text)
    if brings and not 1 <= int(brings[1]) <= MAX_BROUGHT:
        problem = f"brings {many(int(brings[1]), 'spin')}; expected 1 to {MAX_BROUGHT}"
        raise mistake(f"{show(written)} {problem}", *location)
    slide = _paying(text) or _leading(text, written, location)
    if slide is None:
        meant = nearest(text, _WORDS)
        hint = meant if meant.startswith("did you mean") else _RIGHT
        raise mistake(f"{show(written)} is not a slide; {hint}", *location)
    return slide


def _paying(text: str) -> Slide | None:
    """Return the slide on which a spin can end, or None."""
    match = re.fullmatch(rf"(.*?)( \+ spin| \+ ([1-{MAX_BROUGHT}]) spins?)?", text)
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


def _leading(text: str, written: object, location: Location) -> Slide | None:
    """Return the slide that leads to another square, or None. Raises a mistake."""
    if text in _LEADING:
        return Slide(text)
    if match := re.fullmatch(r"(go back|advance) ([0-9]{1,2})", text):
        if 1 <= int(match[2]) < SQUARES:
            return Slide(match[1], int(match[2]))
        raise mistake(f"{show(written)} must go from 1 to {SQUARES - 1} squares", *location)
    if match := re.fullmatch(r"to ([0-9]{1,2}(?: ?, ?[0-9]{1,2})*)", text):
        numbers = [int(word) for word in match[1].split(",")]
        if len({*numbers}) < len(numbers):
            raise mistake(f"{show(written)} has one square twice", *location)
        return Slide("to", squares=tuple(sorted(numbers)))
    return None


Squares = tuple[tuple[Slide, ...], ...]  # square n is at n - 1
Chances = tuple[tuple[Slide, Fraction], ...]  # in the order of Slide


def read_squares(section: object) -> Squares:
    """Return the squares of the file's [squares]. Raises a mistake with its location."""
    if not isinstance(section, Mapping):
        raise mistake(f"{show(section)} is not a section; write [squares] and 1 = [...] below it")
    for key in section:
        if not re.fullmatch(r"[1-9][0-9]?", key) or int(key) > SQUARES:
            raise mistake(f"{show(key)} is not a square; they are 1 to {SQUARES}", "squares")
    numbers = [str(n) for n in range(1, max(map(int, section), default=0) + 1)]
    missing = [number for number in numbers if number not in section]
    if missing:
        problem = f"{', '.join(missing)} {'are' if len(missing) > 1 else 'is'} missing"
        raise mistake(f"{problem}; this board has squares 1 to {numbers[-1]}", "squares")
    if len(numbers) < 2:
        raise mistake("a board has 2 squares or more", "squares")
    squares = []
    for number in numbers:
        slides = section[number]
        if not isinstance(slides, list | tuple):
            problem = f"{show(slides)} is not a list of slides such as [1400, 1750, 2250]"
            raise mistake(problem, "squares", number)
        if not 1 <= len(slides) <= SLIDES:
            problem = f"has {many(len(slides), 'slide')}; expected 1 to {SLIDES}"
            raise mistake(problem, "squares", number)
        squares.append(
            tuple(read_slide(slide, ("squares", number, i)) for i, slide in enumerate(slides))
        )
    return tuple(squares)


def read_chances(section: object) -> Chances:
    """Return the outcomes of the file's [outcomes]. Raises a mistake with its location."""
    if not isinstance(section, Mapping) or not section:
        problem = f"{show(section)} is not a section" if section != {} else "is empty"
        raise mistake(f'{problem}; write [outcomes] and lines such as "whammy" = "1/6" below it')
    if len(section) > MAX_OUTCOMES:
        raise mistake(f"{len(section)} are too many; expected at most {MAX_OUTCOMES}", "outcomes")
    chances: dict[Slide, Fraction] = {}
    for key, written in section.items():
        slide = read_slide(key, ("outcomes", key))
        if slide.moves:
            problem = "leads to another square, and a board of outcomes has no squares"
            raise mistake(problem, "outcomes", key)
        if slide in chances:
            raise mistake(f"'{slide}' is there twice", "outcomes")
        chances[slide] = read_chance(written, ("outcomes", key))
    total = sum(chances.values())
    if total != 1:
        raise mistake(f"the chances sum to {show(total)}, not to 1", "outcomes")
    return tuple(sorted(chances.items()))


def read_chance(written: object, location: Location, *, zero: bool = False) -> Fraction:
    """Return a chance from the file: a fraction as text, or the whole number 1; 0 if `zero`."""
    text = str(written) if written in (0, 1) and type(written) is int else written
    match = isinstance(text, str) and re.fullmatch(r" *([0-9]{1,9})( */ *([0-9]{1,9}))? *", text)
    if not match or (match[3] and int(match[3]) == 0):
        raise mistake(f'{show(written)} is not a chance; write a fraction such as "1/6"', *location)
    chance = Fraction(int(match[1]), int(match[3] or 1))
    if not (zero or chance) or chance > 1:
        right = "from 0 to 1" if zero else "above 0 and up to 1"
        raise mistake(f"{show(written)} is not a chance {right}", *location)
    return chance


def squares_as_written(squares: Squares | None) -> dict[str, list[int | str]] | None:
    """Return [squares] of the canonical form."""
    if squares is None:
        return None
    return {
        str(number): [s.number if str(s).isdecimal() else str(s) for s in slides]
        for number, slides in enumerate(squares, start=1)
    }


def chances_as_written(chances: Chances | None) -> dict[str, str] | None:
    """Return [outcomes] of the canonical form."""
    return None if chances is None else {str(slide): str(chance) for slide, chance in chances}


# --- coarser amounts ---

Amount = TypeVar("Amount", int, Fraction)
Amounts = tuple[tuple[Fraction, Fraction], ...]
"""(amount in units, chance), ascending, each amount once."""
Kept = tuple[tuple[int, Fraction], ...]  # (whole units, chance), ascending, each once
Paid = Sequence[tuple[int | Fraction, Fraction]]  # (dollars, chance) of slides that pay


class Coarse(NamedTuple):
    """Chances on a few whole amounts. moved: chance times distance; exact: the mean stays."""

    moved: Fraction
    kept: Kept
    exact: bool = True


def with_mean_kept(amounts: Amounts, units: Sequence[int]) -> Coarse | None:
    """Return the chances of `amounts` on `units` (ascending) with the mean kept and least moved.

    None if the mean cannot be kept. Units without a chance are left out.
    """
    chances = dict.fromkeys(units, Fraction(0))
    missing = moved = Fraction(0)  # missing: from the mean
    steps: list[tuple[Fraction, int, int, Fraction]] = []
    for amount, chance in amounts:
        place = bisect_right(units, amount)
        lower = units[max(place - 1, 0)]
        chances[lower] += chance
        missing += chance * (amount - lower)
        moved += chance * abs(amount - lower)
        if 0 < place < len(units) and lower < amount:
            upper = units[place]
            steps.append(((amount - lower) / (upper - lower), lower, upper, chance))
    steps.sort(reverse=True)
    if missing < 0:  # amounts below the first unit were raised to it
        steps = [(Fraction(0), unit, units[0], chances[unit]) for unit in units[1:]]
    for ratio, start, end, chance in steps:
        share = min(chance, missing / (end - start))
        chances[start] -= share
        chances[end] += share
        missing -= share * (end - start)
        moved += share * abs(end - start) * (1 - 2 * ratio)
    if missing:
        return None
    return Coarse(moved, tuple((unit, chance) for unit, chance in chances.items() if chance))


@lru_cache(maxsize=64)
def by_size(amounts: Amounts, smallest: int) -> dict[int, Coarse]:
    """Return the coarse chances, of at least `smallest` units, by the number of amounts.

    One amount is the mean, rounded half up. The result is empty if that is below `smallest`.
    """
    if not amounts:
        return {0: Coarse(Fraction(0), ())}
    total = sum((chance for _, chance in amounts), Fraction(0))
    mean = sum((amount * chance for amount, chance in amounts), Fraction(0)) / total
    middle = round_half_up(mean, 1)
    if middle < smallest:
        return {}
    moved = sum((chance * abs(amount - middle) for amount, chance in amounts), Fraction(0))
    sizes = {1: Coarse(moved, ((middle, total),), middle == mean)}
    beside = {unit for amount, _ in amounts for unit in (floor(amount), ceil(amount))}
    best = with_mean_kept(amounts, sorted({max(unit, smallest) for unit in beside}))
    while best is not None:
        sizes[len(best.kept)] = best
        units = [unit for unit, _ in best.kept]
        fewer = [[*units[:i], *units[i + 1 :]] for i in range(len(units)) if len(units) > 2]
        choices = [each for each in (with_mean_kept(amounts, few) for few in fewer) if each]
        best = min(choices, key=lambda each: each.moved, default=None)
    return sizes


def coarsened(money: Amounts, spin: Amounts, count: int) -> tuple[Kept, Kept] | None:
    """Return money and money plus a spin on at most `count` amounts in all.

    The choice prefers means that are kept, then least moved, then fewest amounts. None if `count`
    is too small.
    """
    either = [
        (2 - m.exact - s.exact, m.moved + s.moved, i + j, j, (m.kept, s.kept))
        for (i, m), (j, s) in product(by_size(money, 0).items(), by_size(spin, 1).items())
        if i + j <= count
    ]
    return min(either)[-1] if either else None


# --- the outcomes of a board ---------------------------------------------------------------------


def round_half_up(dollars: int | Fraction, unit: int) -> int:
    """Return the nearest whole number of units, halves up (Python's `round` goes to even)."""
    return int((2 * dollars + unit) // (2 * unit))


def mean_amount(paid: Paid) -> Fraction:
    """Return the mean dollars, exact; 0 if there are none."""
    chance = sum((weight for _, weight in paid), Fraction(0))
    total = sum((weight * dollars for dollars, weight in paid), Fraction(0))
    return total / chance if chance else total


def merged(amounts: Iterable[tuple[Amount, Fraction]]) -> tuple[tuple[Amount, Fraction], ...]:
    """Return (amount, chance), ascending, each amount once."""
    chances: dict[Amount, Fraction] = {}
    for amount, chance in amounts:
        chances[amount] = chances.get(amount, Fraction(0)) + chance
    return tuple(sorted(chances.items()))


def in_units(paid: Paid, unit: int, cap: int) -> Amounts:
    """Return the amounts in units, not rounded.

    Amounts beyond the cap become the cap, which has the same effect at any score.
    """
    return merged((min(Fraction(dollars, unit), Fraction(cap)), chance) for dollars, chance in paid)


PAYS, WHAMMY, DOUBLES, LOSES, MAY_LOSE = range(5)  # kinds of `Effect`
KINDS = {"whammy": WHAMMY, "double": DOUBLES, "lose a whammy": LOSES}


class Effect(NamedTuple):
    """The effect of a slide on the player up.

    kind: it pays `units`, is a whammy, doubles the score, or takes a whammy away (`MAY_LOSE`: only
        from a player who has one).
    spins: spins that it brings back.
    """

    kind: int
    units: int = 0
    spins: int = 0


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of one spin, with exact chances that sum to 1, in units up to the cap."""

    whammy: Fraction
    money: Kept  # that uses the spin
    spin: Kept  # money plus a spin
    others: tuple[tuple[tuple[Effect, ...], Fraction], ...] = ()
    """(effects, chance); the player up takes one of the effects, the first of tied ones."""

    @property
    def distinct(self) -> int:
        """The number of different outcomes, including the whammy."""
        return len(self.money) + len(self.spin) + (self.whammy > 0) + len(self.others)

    def without_spins(self) -> Outcomes:
        """Return the outcomes with more than `spin_cap` spins left: no spin comes back."""
        others = tuple(
            (tuple(dict.fromkeys(effect._replace(spins=0) for effect in effects)), chance)
            for effects, chance in self.others
        )
        return Outcomes(self.whammy, merged(self.money + self.spin), (), others)


# --- the start of a round ---

MAX_QUESTIONS = 6  # the show had four, its pilot five
MAX_SPINS = 5  # spins that one answer brings
MAX_EARNED = 20  # spins that a player begins with, and that all questions bring

Spins = tuple[int, ...]  # spins of each player


Chance = Annotated[
    Fraction, PlainValidator(partial(read_chance, location=(), zero=True)), PlainSerializer(str)
]
Answer = Annotated[StrictInt, Field(ge=0, le=MAX_SPINS)]


class Start(Section):
    """[start]: scores, whammies; and the spins, or the questions that bring them.

    The player who buzzes in first answers a question. The others then choose among that answer and
    two more. The right answer brings `buzz_spins` to the player who buzzed in and `choice_spins` to
    each who chose it; a wrong one costs nothing. If no player buzzes in, all choose. Every player
    is equally likely to buzz in first, unless `buzzes` sets it, and all answers are independent.
    Players are in turn order, the lowest score first, then fewer spins, then from the left.

    Sources: docs/numbers.md#fan-pages-of-press-your-luck, docs/numbers.md#pyl-ml.
    """

    scores: tuple[Annotated[StrictInt, Field(ge=0, le=MAX_DOLLARS)], ...]
    whammies: tuple[Annotated[StrictInt, Field(ge=0, le=3)], ...] | None = None
    spins: tuple[Annotated[StrictInt, Field(ge=0, le=MAX_EARNED)], ...] | None = None
    questions: Annotated[StrictInt, Field(ge=0, le=MAX_QUESTIONS)] = 4
    buzz_spins: Answer = 3
    choice_spins: Answer = 1
    buzzes: tuple[Chance, ...] | None = None
    buzz_right: Chance = Fraction(3, 5)
    choice_right: Chance = Fraction(4, 5)

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        for name in ("whammies", "spins", "buzzes"):
            numbers, players = getattr(self, name), len(self.scores)
            if numbers is not None and len(numbers) != players:
                problem = f"{many(len(numbers), 'number')} for {many(players, 'score')}"
                raise mistake(f"{problem}; expected one a player", "start", name)
        for before, after in pairwise(self.scores):
            if after < before:
                problem = f"{after} stands behind {before}; write the lowest score first: it plays"
                raise mistake(f"{problem} first", "start", "scores")
        if self.spins is not None:
            quiz = [name for name in QUIZ if name in self.model_fields_set]
            if quiz:
                problem = f"spins are given as they are; leave {quiz[0]} out, or spins"
                raise mistake(problem, "start", quiz[0])
        elif sum(self.buzzes or ()) > 1:
            problem = f"the chances sum to {show(sum(self.buzzes or ()))}; expected at most 1"
            raise mistake(f"{problem}, the rest is that nobody buzzes in", "start", "buzzes")
        return self

    def check(self, max_whammies: int) -> None:
        """Raise a mistake if a player would be out by the rules of the board."""
        for whammies in self.whammies or ():
            if whammies >= max_whammies:
                problem = f"{whammies} put a player out; expected fewer than max_whammies"
                raise mistake(f"{problem}, {max_whammies}", "start", "whammies")

    def states(self) -> Iterator[tuple[Fraction, dict[str, Spins]]]:
        """Yield (chance, scores in dollars, earned and whammies in turn order), each state once."""
        states: dict[tuple[Spins, ...], Fraction] = {}
        whammies = self.whammies or (0,) * len(self.scores)
        for spins, chance in self.earned().items():
            players = sorted(zip(self.scores, spins, whammies, strict=True), key=lambda p: p[:2])
            state = tuple(zip(*players, strict=True))
            states[state] = states.get(state, Fraction(0)) + chance
        for state, chance in states.items():
            yield chance, dict(zip(("scores", "earned", "whammies"), state, strict=True))

    def earned(self) -> dict[Spins, Fraction]:
        """Return the chances of the spins that the players earn, in the order of [start]."""
        if self.spins is not None:
            return {self.spins: Fraction(1)}
        players = len(self.scores)
        of_question = dict[Spins, Fraction]()
        buzzes = self.buzzes or (Fraction(1, players),) * players
        for first, chance in enumerate((*buzzes, 1 - sum(buzzes))):
            for right in product((False, True), repeat=players):
                spins, weight = [], chance
                for player, is_right in enumerate(right):
                    likely = self.buzz_right if player == first else self.choice_right
                    brings = self.buzz_spins if player == first else self.choice_spins
                    weight *= likely if is_right else 1 - likely
                    spins.append(brings * is_right)
                if weight:
                    of_question[tuple(spins)] = of_question.get(tuple(spins), Fraction(0)) + weight
        return _convolved(tuple(of_question.items()), self.questions, players)


QUIZ = ("questions", "buzz_spins", "choice_spins", "buzzes", "buzz_right", "choice_right")
"""The keys that describe the questions."""


@lru_cache(maxsize=8)
def _convolved(
    draw: Sequence[tuple[Spins, Fraction]], times: int, players: int
) -> dict[Spins, Fraction]:
    """Return the sum of `times` independent draws of `draw`; whole numbers are faster."""
    scale = lcm(*(chance.denominator for _, chance in draw))
    weights = [(spins, int(chance * scale)) for spins, chance in draw]
    sums: dict[Any, int] = {(0,) * players: 1}
    for _ in range(times):
        before, sums = sums, {}
        for had, weight in before.items():
            for spins, more in weights:
                now = tuple(map(int.__add__, had, spins))
                sums[now] = sums.get(now, 0) + weight * more
    return {spins: Fraction(weight, scale**times) for spins, weight in sums.items()}
