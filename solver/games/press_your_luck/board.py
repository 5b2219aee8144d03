"""Press Your Luck boards: the models of the file, and the chances of one spin derived from it.

A board is 18 squares, numbered clockwise from the top left, of three slides each; every square and
every slide is equally likely. What a slide may be is in `slides`. With `choices = "random"` every
square that a slide offers is equally likely, and landing on it draws one of its three slides. So
the chance a[n] that one spin visits square n satisfies

    a[n] = 1/18 + sum over the slides that lead to n of  a[its square] / 3 / squares it offers

which is solved in the order of travel, as no square may lead back to itself; every slide is the
outcome with chance a[its square] / 3. All of it is in exact fractions. Instead of [squares] a board
may give [outcomes]: slides with their chances as fractions.

Amounts are then rounded, halves up, to units of `score_unit` dollars; or, with `outcomes = K`, put
on at most K outcomes of whole units that keep the mean (`coarser`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, ClassVar, Literal, Self

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    StrictBool,
    StrictInt,
    StrictStr,
    field_validator,
    model_validator,
)

from luckbase.solver.board.model import Board, Location, Section, mistake
from luckbase.solver.errors import BoardError, OptionError
from luckbase.solver.games.press_your_luck.coarser import Chances as Amounts
from luckbase.solver.games.press_your_luck.coarser import coarsened, fewest
from luckbase.solver.games.press_your_luck.slides import (
    MAX_DOLLARS,
    MAX_OUTCOMES,
    SLIDES,
    SQUARES,
    Chances,
    Slide,
    Squares,
    around,
    chances_as_written,
    read_chances,
    read_squares,
    squares_as_written,
)
from luckbase.solver.sentences import show

MAX_CAP_UNITS = 255  # a score is one byte in the tables

_NOT_SOLVED = {"double", "money or lose a whammy"}

Number = Annotated[StrictInt, Field(ge=1, le=SQUARES)]  # of a square
Dollars = Annotated[StrictInt, Field(ge=1, le=MAX_DOLLARS)]


class Places(Section):
    """Where the directional slides lead; only the ones that some slide needs must be given."""

    big_bucks: Number | None = None
    corners: tuple[Number, ...] | None = None
    across: Number | None = None

    @field_validator("corners", mode="before")
    @classmethod
    def _corners_is_a_list(cls, written: object) -> object:
        if not isinstance(written, list | tuple) or not written:
            raise mistake(f"{show(written)} is not a list of squares such as [1, 6, 10, 15]")
        return written

    @field_validator("corners")
    @classmethod
    def _corners_in_order(cls, corners: tuple[int, ...]) -> tuple[int, ...]:
        if len({*corners}) < len(corners):
            raise mistake(f"{show(corners)} names a square twice")
        return tuple(sorted(corners))


class Rules(Section):
    """The rule options."""

    third_place_spins: StrictBool = True  # strictly behind both others: must play
    tied_pass: Literal["passer", "next"] = "passer"  # who picks between tied opponents
    choices: Literal["random", "best"] = "random"  # which of the squares offered is taken
    max_whammies: Annotated[StrictInt, Field(ge=1, le=4)] = 4  # that many put a player out


class Solve(Section):
    """The solve options."""

    score_unit: Dollars = 250  # dollars; every amount is rounded to a multiple
    score_cap: Dollars = 20_000  # dollars; scores saturate here
    frontier: Annotated[StrictInt, Field(ge=1, le=20)] = 2  # total spins that the table covers
    outcomes: Literal["all", "three"] | Annotated[StrictInt, Field(ge=2, le=MAX_OUTCOMES)] = "all"
    """"three": whammy, mean money, mean money + spin; K: at most so many that keep the means."""
    payoffs: Literal["float32", "float64"] = Field(
        default="float32", exclude_if=lambda kept: kept == "float32"
    )
    """How a table stores them. Left out of the identity where it is float32."""

    @field_validator("outcomes", mode="before")
    @classmethod
    def _outcomes_are_all_or_so_many(cls, written: object) -> object:
        if written in ("all", "three"):
            return written
        if type(written) is int and 2 <= written <= MAX_OUTCOMES:
            return written
        right = f"write 'all', 'three' or how many at most, 2 to {MAX_OUTCOMES}"
        raise mistake(f"{show(written)} is not one of its values; {right}", "solve", "outcomes")

    @model_validator(mode="after")
    def _units_fit_the_cap(self) -> Self:
        if self.score_cap % self.score_unit:
            said = f"{self.score_unit} does not divide score_cap {self.score_cap}"
            raise mistake(said, "solve", "score_unit")
        units = self.score_cap // self.score_unit
        if units > MAX_CAP_UNITS:
            said = f"{self.score_cap} is {units} units of score_unit {self.score_unit}"
            raise mistake(f"{said}; the most is {MAX_CAP_UNITS}", "solve", "score_cap")
        return self


@dataclass(frozen=True)
class Leaf:
    """A slide on which a spin can end: where it stands in the file, and its exact chance."""

    at: Location
    slide: Slide
    chance: Fraction


class PressYourLuckBoard(Board):
    """A board of Press Your Luck, round 2: [squares] or [outcomes], [places], [rules], [solve]."""

    reach: ClassVar[frozenset[str]] = frozenset({"frontier"})

    game: Literal["press-your-luck"]
    title: StrictStr = ""
    prize_value: Dollars | None = None  # dollars; needed where some slide is a prize
    squares: Annotated[
        Squares | None, PlainValidator(read_squares), PlainSerializer(squares_as_written)
    ] = None
    outcomes: Annotated[
        Chances | None, PlainValidator(read_chances), PlainSerializer(chances_as_written)
    ] = None
    places: Places = Places()
    rules: Rules = Rules()
    solve: Solve = Solve()

    @classmethod
    def options(cls) -> dict[str, Location]:
        return {**super().options(), "prize_value": ("prize_value",)}

    @classmethod
    def place(cls, location: Location) -> str:
        match location:
            case ("squares", str(square)):
                return f"squares {square}"
            case ("squares", str(square), int(slide)):
                return f"squares {square}, slide {slide + 1}"
            case ("outcomes", str(outcome)):
                return f"outcomes, {show(outcome)}"
            case ("places", *inner) if inner:
                return super().place(tuple(inner))
        return super().place(location)

    @property
    def cap_units(self) -> int:
        """The highest score, in units of `score_unit`; 1 to 255."""
        return self.solve.score_cap // self.solve.score_unit

    def leaves(self) -> tuple[Leaf, ...]:
        """Every slide on which a spin can end, in the order of the file; chances sum to 1."""
        if self.outcomes is not None:
            return tuple(Leaf(("outcomes", str(s)), s, chance) for s, chance in self.outcomes)
        assert self.squares is not None
        return _leaves(self.squares, self.places)

    def dollars(self, slide: Slide) -> int:
        """What a money or prize slide is worth."""
        return slide.number if slide.kind == "money" else self.prize_value or 0

    @model_validator(mode="after")
    def _can_be_played(self) -> Self:
        if (self.squares is None) == (self.outcomes is None):
            both = "has neither" if self.squares is None else "has both"
            raise mistake(f"a board has either [squares] or [outcomes], and this one {both}")
        if self.outcomes is not None and self.places != Places():
            raise mistake("a board of outcomes has no squares to lead to", "places")
        leaves = self.leaves()
        for leaf in leaves:
            if leaf.slide.kind == "prize" and self.prize_value is None:
                said = f"is missing, and {self.place(leaf.at)} is a prize"
                raise mistake(said, "prize_value")
        source = "outcomes" if self.squares is None else "squares"
        if all(leaf.slide.kind == "whammy" for leaf in leaves):
            raise mistake("every outcome is a whammy, and no score could ever change", source)
        if all(leaf.slide.spin for leaf in leaves):
            raise mistake("every outcome gives a spin back, and no game would end", source)
        self._every_spin_pays(leaves)
        return self

    def _every_spin_pays(self, leaves: tuple[Leaf, ...]) -> None:
        """Refuse money plus a spin of 0 units: the state would come back unchanged, for ever."""
        unit, for_ever = self.solve.score_unit, "a spin that changes nothing would never end"
        paying = [leaf for leaf in leaves if leaf.slide.spin and leaf.slide.kind != "double"]
        if isinstance(self.solve.outcomes, int):
            if not any(leaf.slide.kind in _NOT_SOLVED for leaf in leaves):
                self._outcomes_are_enough(leaves, self.solve.outcomes)
            return
        if self.solve.outcomes == "three":
            mean, _ = _mean(self, paying)
            if paying and not round_half_up(mean, unit):
                said = f"the mean amount plus a spin is {mean}, 0 units of score_unit {unit}"
                raise mistake(f"{said}; {for_ever}", "solve", "outcomes")
            return
        for leaf in paying:
            if not round_half_up(self.dollars(leaf.slide), unit):
                said = f"'{leaf.slide}' is 0 units of score_unit {unit}; {for_ever}"
                raise mistake(said, *leaf.at)

    def _outcomes_are_enough(self, leaves: tuple[Leaf, ...], count: int) -> None:
        """Refuse fewer outcomes than keep the mean of the money and of the money plus a spin."""
        unit, either = self.solve.score_unit, _amounts(self, leaves)
        least = fewest(*either)
        if least is None:
            mean, _ = _mean(self, [leaf for leaf in leaves if leaf.slide.spin])
            said = f"the mean amount plus a spin is {float(mean):,.2f}, below score_unit {unit}"
            raise mistake(f"{said}, and no whole units keep it", "solve", "outcomes")
        least += any(leaf.slide.kind == "whammy" for leaf in leaves)
        if count < least:
            said = f"{count} are too few to keep the mean amounts on a grid of {unit} dollars"
            raise mistake(f"{said}; the least is {least}", "solve", "outcomes")


def round_half_up(dollars: int | Fraction, unit: int) -> int:
    """The whole number of units nearest to an amount, halves up (Python's `round` goes to even)."""
    return int((2 * dollars + unit) // (2 * unit))


def _slides(squares: Squares) -> Iterator[tuple[int, Location, Slide]]:
    """Every slide with the number of its square and its location in the file."""
    for square, slides in enumerate(squares, start=1):
        for i, slide in enumerate(slides):
            yield square, ("squares", str(square), i), slide


def _offered(square: int, slide: Slide, places: Places) -> list[int]:
    """The squares, 1 to 18, that a slide that moves leads to; none where [places] does not say."""
    match slide.kind:
        case "go back":
            return [around(square - slide.number)]
        case "advance":
            return [around(square + slide.number)]
        case "move one":
            return [around(square - 1), around(square + 1)]
        case "pick a corner":
            return [corner for corner in places.corners or () if corner != square]
    named = places.big_bucks if slide.kind == "big bucks" else places.across
    return [named] if named else []


@lru_cache(maxsize=256)
def _leaves(squares: Squares, places: Places) -> tuple[Leaf, ...]:
    """The slides on which a spin can end; a board's are asked for several times, by equal boards
    too, and all their fractions take a millisecond."""
    visits = _visits(squares, places)
    return tuple(
        Leaf(at, slide, visits[square] / SLIDES)
        for square, at, slide in _slides(squares)
        if not slide.moves
    )


def _visits(squares: Squares, places: Places) -> dict[int, Fraction]:
    """The chance that one spin visits each square, lit itself or led to.

    Raises a mistake where a slide leads nowhere or slides lead in a circle.
    """
    leads = _leads(squares, places)
    visits = dict.fromkeys(leads, Fraction(1, SQUARES))
    for square in reversed(_ends_first(leads)):
        for offered in leads[square]:
            for target in offered:
                visits[target] += visits[square] / SLIDES / len(offered)
    return visits


def _leads(squares: Squares, places: Places) -> dict[int, list[list[int]]]:
    """For each square the squares that each of its moving slides offers."""
    leads: dict[int, list[list[int]]] = {n: [] for n in range(1, SQUARES + 1)}
    for square, at, slide in _slides(squares):
        if slide.moves:
            leads[square].append(_offered(square, slide, places))
            if not leads[square][-1]:
                key = "corners" if slide.kind == "pick a corner" else slide.kind.replace(" ", "_")
                raise mistake(f"'{slide}' leads nowhere; give {key} in [places]", *at)
    return leads


def _ends_first(leads: dict[int, list[list[int]]]) -> list[int]:
    """Each square after all that it leads to."""
    done: list[int] = []

    def follow(square: int, path: list[int]) -> None:
        if square in path:
            circle = " → ".join(map(str, [*path[path.index(square) :], square]))
            said = f"slides lead in a circle, {circle}, and a spin could go round for ever"
            raise mistake(said, "squares", str(square))
        if square not in done:
            for target in (n for offered in leads[square] for n in offered):
                follow(target, [*path, square])
            done.append(square)

    for square in leads:
        follow(square, [])
    return done


def _mean(board: PressYourLuckBoard, leaves: Iterable[Leaf]) -> tuple[Fraction, Fraction]:
    """The mean dollars of the leaves, exact (0 if there are none), and their chance in all."""
    weights = [(leaf.chance, board.dollars(leaf.slide)) for leaf in leaves]
    chance = sum((weight for weight, _ in weights), Fraction(0))
    total = sum((weight * dollars for weight, dollars in weights), Fraction(0))
    return (total / chance if chance else total), chance


def _amounts(board: PressYourLuckBoard, leaves: Iterable[Leaf]) -> tuple[Amounts, Amounts]:
    """The amounts of the money and of the money plus a spin, in units, not rounded; the cap's where
    they are beyond it, for from any score that does the same."""
    found: dict[bool, dict[Fraction, Fraction]] = {False: {}, True: {}}
    for leaf in leaves:
        if leaf.slide.kind != "whammy":
            units = Fraction(board.dollars(leaf.slide), board.solve.score_unit)
            amount, kind = min(units, Fraction(board.cap_units)), found[leaf.slide.spin]
            kind[amount] = kind.get(amount, Fraction(0)) + leaf.chance
    money, spin = (tuple(sorted(kind.items())) for kind in found.values())
    return money, spin


@dataclass(frozen=True)
class Outcomes:
    """What one spin can be, with exact chances that sum to 1.

    `money` and `spin` hold (units, chance), units ascending and each once: money that uses the
    spin, and money plus a spin. A unit is `score_unit` dollars; nothing is above the cap, where
    scores saturate.
    """

    whammy: Fraction
    money: tuple[tuple[int, Fraction], ...]
    spin: tuple[tuple[int, Fraction], ...]

    @property
    def distinct(self) -> int:
        """How many different outcomes there are, the whammy included."""
        return len(self.money) + len(self.spin) + (self.whammy > 0)


def require_solvable(board: PressYourLuckBoard) -> None:
    """Refuse a board that the file format holds and the solver does not take yet, saying where.

    Raises OptionError for `choices = "best"`, BoardError for a slide.
    """
    if board.rules.choices != "random":
        raise OptionError(
            f"board {board.name}: choices: the solver does not take 'best' yet; write 'random'"
        )
    refused = [leaf for leaf in board.leaves() if leaf.slide.kind in _NOT_SOLVED]
    if refused:
        said = " and ".join(f"'{leaf.slide}' ({board.place(leaf.at)})" for leaf in refused[:3])
        raise BoardError(f"board {board.name}: the solver does not take {said} yet")


def outcome_distribution(board: PressYourLuckBoard) -> Outcomes:
    """What one spin of the board can be, as the module's docstring derives it.

    With the option `outcomes = "three"`: a whammy, the mean money and the mean money plus a spin,
    each mean exact and then rounded as any amount. With `outcomes = K`: as `coarser` makes them, at
    most K with the whammy. Raises as `require_solvable` does.
    """
    require_solvable(board)
    leaves = board.leaves()
    whammy = sum((s.chance for s in leaves if s.slide.kind == "whammy"), Fraction(0))
    if isinstance(board.solve.outcomes, int):
        coarse = coarsened(*_amounts(board, leaves), board.solve.outcomes - (whammy > 0))
        assert coarse is not None, "the model has checked it"
        return Outcomes(whammy, coarse[0].kept, coarse[1].kept)
    unit = board.solve.score_unit
    merged: dict[bool, dict[int, Fraction]] = {False: {}, True: {}}
    for spin, units in merged.items():
        paying = [s for s in leaves if s.slide.kind != "whammy" and s.slide.spin == spin]
        amounts = [_mean(board, [leaf]) for leaf in paying]
        if board.solve.outcomes == "three" and paying:
            amounts = [_mean(board, paying)]
        for dollars, chance in amounts:
            # From any score an amount above the cap does what the cap does.
            key = min(round_half_up(dollars, unit), board.cap_units)
            units[key] = units.get(key, Fraction(0)) + chance
    money, spins = (tuple(sorted(units.items())) for units in merged.values())
    return Outcomes(whammy, money, spins)
