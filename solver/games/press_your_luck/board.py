"""Press Your Luck boards: the models of the file, and the outcomes of a spin.

Squares are numbered clockwise from the top left; every square, and every slide of a square, is
equally likely. (docs/reference/boards.md lists slides, `outcomes` reads them.) With `choices =
"random"` every square that a slide offers is equally likely, and landing on it draws one of its
slides. So the chance a[n] that one spin visits square n satisfies

    a[n] = 1/squares + sum over the slides that lead to n of
                       a[its square] / the slides there / the squares it offers

It is solved in the order of travel, since no square may lead back to itself. Every slide is the
outcome with chance a[its square] / the slides there.

With `choices = "best"` the board has stopped, every square shows one of its slides, and the player
up takes one of the offered slides. So a spin leads to a list of slides to choose from,
clockwise from the lit square; an offered slide that leads on is replaced by the slides that it
offers (`PressYourLuckBoard.landings`).

All chances are exact fractions. `outcomes` converts either kind to outcomes in units of a score.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    StrictInt,
    field_validator,
    model_validator,
)

from luckbase.solver.board.model import Board, Location, Section, mistake, option
from luckbase.solver.games.press_your_luck.outcomes import (
    KINDS,
    LOSES,
    MAX_DOLLARS,
    MAX_OUTCOMES,
    MAY_LOSE,
    PAYS,
    SQUARES,
    WHAMMY,
    Chances,
    Effect,
    Outcomes,
    Paid,
    Slide,
    Squares,
    Start,
    chances_as_written,
    coarsened,
    in_units,
    mean_amount,
    read_chances,
    read_squares,
    round_half_up,
    squares_as_written,
)
from luckbase.solver.sentences import show

MAX_LANDINGS = 2000  # different lists of slides to choose from
MAX_SPIN_CAP = 31
MAX_DEPTH = 20  # spins of a table
MAX_CAP_UNITS = 255  # of a full table; a search takes more

Number = Annotated[StrictInt, Field(ge=1, le=SQUARES)]  # of a square
Dollars = Annotated[StrictInt, Field(ge=1, le=MAX_DOLLARS)]


def later(default: Any, help: str, **bounds: Any) -> Any:
    """Declare an option that older boards lack: at its default it is left out of the identity."""
    return Field(
        default=default, exclude_if=lambda kept: kept == default, description=help, **bounds
    )  # fmt: skip


class Places(Section):
    """The targets of directional slides. A target that no slide needs may be missing."""

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

    players: int = later(3, "Number of players.", ge=2, le=3, strict=True)
    third_place_spins: bool = option(
        True, help="While three players are in, a player who is behind both others must play."
    )
    tied_pass: Literal["passer", "next"] = option(
        "passer",
        help="The player who gets passed spins if both opponents are level: the choice of the "
        "passer, or the next in turn order.",
    )
    choices: Literal["random", "best"] = option(
        "random",
        help="The square that a slide leads to: each is equally likely, or the player up sees "
        "their slides and takes the best.",
    )
    or_lose_whammy: Literal["best", "cash"] = later(
        "best",
        'The effect of a slide such as "2000 or lose a whammy" for a player with a whammy: the '
        "better of the two, or the money.",
    )
    spin_cap: int | None = option(
        None, 1, MAX_SPIN_CAP,
        "Maximum number of spins in all after a slide that brings spins; spins beyond it are lost. "
        "Required if a slide brings several spins.",
    )  # fmt: skip
    max_whammies: int = option(4, 1, 4, "Whammies that put a player out of the game.")
    objective: Literal["win", "money", "win+money"] = later(
        "win",
        "The payoff: the chance to win, shared in a tie; dollars, which are the score of each "
        "winner and 0 for the others; or dollars plus win_value for a win.",
    )
    win_value: int | None = option(
        None, 1, MAX_DOLLARS,
        "Dollars that a win is worth in addition to the score; tied players share them. Required "
        "with objective = 'win+money', and only allowed there.",
    )  # fmt: skip
    house: bool = later(
        False,
        "The last player in plays on for money while they have spins, and may stop if none of "
        "these were passed to them; not with objective = 'win'.",
        strict=True,
    )

    @model_validator(mode="after")
    def _money_counts(self) -> Self:
        """Refuse options without an effect, and dollars plus wins without a rate."""
        if self.objective == "win+money" and self.win_value is None:
            problem = "is missing, and objective = 'win+money' adds wins to dollars"
            raise mistake(f"{problem}; write win_value = 10000, or another number", "rules",
                          "win_value")  # fmt: skip
        if self.objective != "win+money" and self.win_value is not None:
            problem = f"{self.win_value} counts for nothing with objective = '{self.objective}'"
            raise mistake(f"{problem}; write objective = 'win+money', or leave it out", "rules",
                          "win_value")  # fmt: skip
        if self.house and self.objective == "win":
            problem = "true changes nothing with objective = 'win': the last one in has won"
            raise mistake(f"{problem}; write objective = 'money' or 'win+money'", "rules", "house")
        return self


class Solve(Section):
    """The solve options."""

    score_unit: int = option(
        250, 1, MAX_DOLLARS,
        "The grid: dollars between scores. Amounts are rounded to multiples, halves up. It divides "
        f"score_cap, at most {MAX_CAP_UNITS} times for a full table.",
    )  # fmt: skip
    score_cap: int = option(
        20_000, 1, MAX_DOLLARS,
        "The highest score in dollars; scores stop here, and a player at the cap passes.",
    )  # fmt: skip
    frontier: int = option(
        2, 1, MAX_DEPTH,
        "Number of spins up to which the table has the payoffs and best action of every state. No "
        "payoff depends on it.",
    )  # fmt: skip
    decisions: int | None = option(
        None, 1, MAX_DEPTH,
        "Number of spins up to which the table also has the best actions beyond the frontier, "
        "without payoffs, in a hundredth of the bytes.",
    )  # fmt: skip
    outcomes: Literal["all"] | Annotated[StrictInt, Field(ge=2, le=MAX_OUTCOMES)] = option(
        "all",
        help="Outcomes of a spin: all, or at most this number with the same odds and means. With "
        "3: a whammy, the mean amount, and the mean amount plus a spin, rounded.",
    )
    payoffs: Literal["float32", "float64"] = later(
        "float32",
        "Type of stored payoffs: float32 (within 3e-8), or float64 (unrounded, twice the bytes).",
    )

    @field_validator("outcomes", mode="before")
    @classmethod
    def _outcomes_are_all_or_so_many(cls, written: object) -> object:
        if written == "all":
            return written
        if type(written) is int and 2 <= written <= MAX_OUTCOMES:
            return written
        right = f"expected 'all' or how many at most, 2 to {MAX_OUTCOMES}"
        raise mistake(f"{show(written)} is not allowed; {right}", "solve", "outcomes")

    @model_validator(mode="after")
    def _units_fit_the_cap(self) -> Self:
        if self.score_cap % self.score_unit:
            problem = f"{self.score_unit} does not divide score_cap {self.score_cap}"
            fit = [unit for unit in range(1, self.score_cap + 1) if not self.score_cap % unit]
            below = max(unit for unit in fit if unit < self.score_unit)
            above = min([unit for unit in fit if unit > self.score_unit], default=below)
            near = " or ".join(map(str, dict.fromkeys((below, above))))
            raise mistake(f"{problem}; expected {near}", "solve", "score_unit")
        return self


@dataclass(frozen=True)
class Leaf:
    """A slide on which a spin can end: its location in the file, and its exact chance."""

    location: Location
    slide: Slide
    chance: Fraction


class PressYourLuckBoard(Board):
    """A board of Press Your Luck, round 2: [squares] or [outcomes], [places], [start], [rules],
    [solve]. The start changes no payoff and is left out of the canonical form."""

    reach: ClassVar[frozenset[str]] = frozenset({"frontier", "decisions"})
    grid: ClassVar[tuple[str, ...]] = ("score_unit", "frontier", "decisions")

    game: Literal["press-your-luck"]
    prize_value: Dollars | None = Field(
        default=None,
        description="Dollars that a prize counts: a key at the top of the file, needed where some "
        "slide is a prize.",
    )
    squares: Annotated[
        Squares | None, PlainValidator(read_squares), PlainSerializer(squares_as_written)
    ] = None
    outcomes: Annotated[
        Chances | None, PlainValidator(read_chances), PlainSerializer(chances_as_written)
    ] = None
    places: Places = Places()
    start: Start | None = Field(default=None, exclude=True)
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
        """The highest score, in units of `score_unit`; at most 255 in a full table."""
        return self.solve.score_cap // self.solve.score_unit

    @property
    def depth(self) -> int:
        """The most spins for which a table has the best actions."""
        return max(self.solve.frontier, self.solve.decisions or 0)

    def leaves(self) -> tuple[Leaf, ...]:
        """Return every slide on which a spin can end, in the file's order; chances sum to 1."""
        if self.outcomes is not None:
            return tuple(Leaf(("outcomes", str(s)), s, chance) for s, chance in self.outcomes)
        assert self.squares is not None
        return _leaves(self.squares, self.places)

    def landings(self) -> Mapping[tuple[Slide, ...], Fraction]:
        """Return the chance of every list of slides that a spin offers to the player up.

        With `choices = "random"` each list has one slide. Chances sum to 1.
        """
        if self.rules.choices == "random" or self.squares is None:
            chances: dict[tuple[Slide, ...], Fraction] = {}
            for leaf in self.leaves():
                chances[leaf.slide,] = chances.get((leaf.slide,), Fraction(0)) + leaf.chance
            return chances
        return _landings(self.squares, self.places)

    def starts(self) -> Iterator[tuple[Fraction, dict[str, tuple[int, ...]]]]:
        """Yield (chance, state in words) of each start, with scores rounded to the grid."""
        unit, cap = self.solve.score_unit, self.solve.score_cap
        for chance, state in () if self.start is None else self.start.states():
            scores = (min(round_half_up(score, unit) * unit, cap) for score in state["scores"])
            yield chance, {**state, "scores": tuple(scores)}

    def dollars(self, slide: Slide) -> int:
        """Return the dollars of a money or prize slide."""
        return slide.number if slide.kind.startswith("money") else self.prize_value or 0

    def paid(self, leaves: Iterable[Leaf]) -> list[Paid]:
        """Return (dollars, chance) of leaves that pay money, and of leaves that also return the
        spin."""
        paying = [leaf for leaf in leaves if leaf.slide.kind in ("money", "prize")]
        return [
            [(self.dollars(hit.slide), hit.chance) for hit in paying if hit.slide.spins == back]
            for back in (0, 1)
        ]

    @model_validator(mode="after")
    def _can_be_played(self) -> Self:
        if (self.squares is None) == (self.outcomes is None):
            both = "has neither" if self.squares is None else "has both"
            raise mistake(f"a board has either [squares] or [outcomes], and this one {both}")
        if self.outcomes is not None and self.places != Places():
            raise mistake("a board of outcomes has no squares to lead to", "places")
        leaves = self.leaves()
        for leaf in leaves:
            problem = f"is missing, and {self.place(leaf.location)}"
            if leaf.slide.kind == "prize" and self.prize_value is None:
                raise mistake(f"{problem} is a prize", "prize_value")
            if leaf.slide.spins > 1 and self.rules.spin_cap is None:  # spins could grow for ever
                problem = f"{problem} brings more than one spin; write spin_cap = 10, or another"
                raise mistake(f"{problem} number", "rules", "spin_cap")
        source = "outcomes" if self.squares is None else "squares"
        if all(leaf.slide.kind == "whammy" for leaf in leaves):
            raise mistake("every outcome is a whammy, and no score could ever change", source)
        if all(leaf.slide.spins for leaf in leaves):
            raise mistake("every outcome gives a spin back, and no game would end", source)
        if self.start is not None:
            self.start.check(self.rules.max_whammies)
        self._can_be_mixed(leaves)
        self._every_spin_pays(leaves)
        self._decisions_can_be_kept(leaves)
        return self

    def _decisions_can_be_kept(self, leaves: tuple[Leaf, ...]) -> None:
        """Refuse decisions beyond the frontier if their tiers would read others in full."""
        if self.depth == self.solve.frontier:
            return
        for leaf in leaves:
            if any(effect.kind in (LOSES, MAY_LOSE) for effect in effects_of(self, leaf.slide)):
                problem = (
                    f"{self.depth} is beyond frontier {self.solve.frontier}, and with "
                    f"'{leaf.slide}' ({self.place(leaf.location)}) no decisions alone can be kept"
                )
                raise mistake(f"{problem}; leave it out", "solve", "decisions")

    def _can_be_mixed(self, leaves: tuple[Leaf, ...]) -> None:
        """Refuse `outcomes = K`, which keeps means of money, with other kinds of outcomes."""
        if self.solve.outcomes == "all":
            return
        others = ["choices = 'best'"] if self.rules.choices == "best" else []
        for leaf in leaves:
            if leaf.slide.kind not in ("money", "prize", "whammy") or leaf.slide.spins > 1:
                others.append(f"'{leaf.slide}' ({self.place(leaf.location)})")
        if others:
            problem = f"{show(self.solve.outcomes)} cannot be mixed with {others[0]}"
            raise mistake(f"{problem}; write outcomes = 'all'", "solve", "outcomes")

    def _every_spin_pays(self, leaves: tuple[Leaf, ...]) -> None:
        """Refuse money plus a spin of 0 units: the state would never change."""
        unit, for_ever = self.solve.score_unit, "a spin that changes nothing would never end"
        paying = [leaf for leaf in leaves if leaf.slide.spins and leaf.slide.kind != "double"]
        if self.solve.outcomes != "all":
            kinds = [bool(amounts) for amounts in self.paid(leaves)]
            kinds.append(any(leaf.slide.kind == "whammy" for leaf in leaves))
            if self.solve.outcomes < sum(kinds):
                problem = (
                    f"{self.solve.outcomes} are too few for a whammy, money, and money plus a spin"
                )
                raise mistake(f"{problem}; expected at least {sum(kinds)}", "solve", "outcomes")
            mean = mean_amount(self.paid(paying)[True])
            if paying and not round_half_up(mean, unit):
                problem = f"the mean amount plus a spin is {mean}, 0 units of score_unit {unit}"
                raise mistake(f"{problem}; {for_ever}", "solve", "outcomes")
            return
        for leaf in paying:
            if not round_half_up(self.dollars(leaf.slide), unit):
                problem = f"'{leaf.slide}' is 0 units of score_unit {unit}; {for_ever}"
                raise mistake(problem, *leaf.location)


@lru_cache(maxsize=256)
def _leaves(squares: Squares, places: Places) -> tuple[Leaf, ...]:
    """Return the slides on which a spin can end. Raises a mistake if slides lead nowhere or in a
    circle."""
    leads: dict[int, list[list[int]]] = {n: [] for n in range(1, len(squares) + 1)}
    ends: list[tuple[int, Location, Slide]] = []
    for square, slides in enumerate(squares, start=1):
        for i, slide in enumerate(slides):
            location = ("squares", str(square), i)
            if slide.moves:
                leads[square].append(_offered(location, square, slide, squares, places))
            else:
                ends.append((square, location, slide))
    visits = dict.fromkeys(leads, Fraction(1, len(squares)))
    for square in _order_of_travel(leads):
        for offered in leads[square]:
            for target in offered:
                visits[target] += visits[square] / len(squares[square - 1]) / len(offered)
    return tuple(
        Leaf(location, slide, visits[square] / len(squares[square - 1]))
        for square, location, slide in ends
    )


@lru_cache(maxsize=64)
def _landings(squares: Squares, places: Places) -> Mapping[tuple[Slide, ...], Fraction]:
    """Return the lists of slides that a spin can offer on a board that has stopped, with chances.
    Raises a mistake if there are too many lists."""
    chances: dict[tuple[Slide, ...], Fraction] = {}
    todo: list[tuple[tuple[int, ...], dict[int, Slide], tuple[Slide, ...], Fraction]] = [
        ((square,), {}, (), Fraction(1, len(squares))) for square in range(1, len(squares) + 1)
    ]
    while todo:
        waiting, shown, slides, chance = todo.pop()
        if not waiting:
            chances[slides] = chances.get(slides, Fraction(0)) + chance
            if len(chances) > MAX_LANDINGS:
                problem = f"'best' gives more than {MAX_LANDINGS} lists of slides to choose from"
                raise mistake(f"{problem}; write 'random', or fewer slides", "rules", "choices")
            continue
        square, *later = waiting
        choices = squares[square - 1]
        for i, slide in enumerate(choices) if square not in shown else [(0, shown[square])]:
            weight = chance if square in shown else chance / len(choices)
            seen = {**shown, square: slide}
            if not slide.moves:
                todo.append((tuple(later), seen, (*slides, slide), weight))
                continue
            offered = _offered(("squares", str(square), i), square, slide, squares, places)
            todo.append(((*offered, *later), seen, slides, weight))
    return chances


def _offered(
    location: Location, square: int, slide: Slide, squares: Squares, places: Places
) -> list[int]:
    """Return the squares, from 1, that a moving slide leads to, in clockwise order."""
    count = len(squares)
    steps = {"go back": (-slide.number,), "advance": (slide.number,), "move one": (-1, 1)}
    if slide.kind in steps:
        offered = {(square + step - 1) % count + 1 for step in steps[slide.kind]}
    elif slide.kind == "to":
        offered = set(slide.squares)
        if not 1 <= min(offered) <= max(offered) <= count:
            raise mistake(f"'{slide}' leads to no square; expected 1 to {count}", *location)
    else:
        key = "corners" if slide.kind == "pick a corner" else slide.kind.replace(" ", "_")
        named: int | tuple[int, ...] | None = getattr(places, key)
        offered = {named} if isinstance(named, int) else {*(named or ())} - {square}
        if not offered:
            raise mistake(f"'{slide}' leads nowhere; give {key} in [places]", *location)
        if max(offered) > count:
            raise mistake(f"{max(offered)} is not a square; expected 1 to {count}", "places", key)
    return sorted(offered, key=lambda n: (n - square) % count)


def _order_of_travel(leads: dict[int, list[list[int]]]) -> list[int]:
    """Return the squares, each before all squares that it leads to."""
    targets = {square: {n for offered in leads[square] for n in offered} for square in leads}
    try:
        return [*TopologicalSorter(targets).static_order()][::-1]
    except CycleError as error:
        *circle, _ = error.args[1][::-1]
    first = circle.index(min(circle))
    circle = [*circle[first:], *circle[: first + 1]]
    problem = f"slides lead in a circle, {' → '.join(map(str, circle))}, and a spin could go round"
    raise mistake(f"{problem} for ever", "squares", str(circle[0]))


def outcome_distribution(board: PressYourLuckBoard) -> Outcomes:
    """Return the outcomes of one spin; with `outcomes = K` at most K, by `outcomes.coarsened`."""
    grid = board.solve.score_unit, board.cap_units
    plain: dict[Effect, Fraction] = {}
    others: dict[tuple[Effect, ...], Fraction] = {}
    for slides, chance in board.landings().items():
        effects = tuple(
            dict.fromkeys(item for slide in slides for item in effects_of(board, slide))
        )
        first = effects[0]
        if len(effects) == 1 and (first.kind == WHAMMY or (first.kind == PAYS and first.spins < 2)):
            plain[first] = plain.get(first, Fraction(0)) + chance
        else:
            others[effects] = others.get(effects, Fraction(0)) + chance
    whammy = plain.pop(Effect(WHAMMY), Fraction(0))
    if board.solve.outcomes == "all":
        money, spin = (
            tuple(sorted((item.units, p) for item, p in plain.items() if item.spins == back))
            for back in (0, 1)
        )
        return Outcomes(whammy, money, spin, tuple(sorted(others.items())))
    amounts = [in_units(paid, *grid) for paid in board.paid(board.leaves())]
    coarse = coarsened(amounts[0], amounts[1], board.solve.outcomes - (whammy > 0))
    assert coarse is not None, "the model has checked it"
    return Outcomes(whammy, *coarse)


def effects_of(board: PressYourLuckBoard, slide: Slide, *, exact: bool = False) -> Iterator[Effect]:
    """Yield the effects of a slide, in units or in `exact` dollars. If there are several, the
    player up takes one."""
    units = board.dollars(slide)
    if not exact:
        units = min(round_half_up(units, board.solve.score_unit), board.cap_units)
    if slide.kind in ("money", "prize", "money or lose a whammy"):
        yield Effect(PAYS, units, slide.spins)
        if slide.kind == "money or lose a whammy" and board.rules.or_lose_whammy == "best":
            yield Effect(MAY_LOSE)
    else:
        yield Effect(KINDS[slide.kind], 0, slide.spins)
