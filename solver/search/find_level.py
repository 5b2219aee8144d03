"""A level of a game that declares none, looked for on a sample of its edges (`capabilities.Level`).

Linear functions that no sampled edge raises are a cone: w · d <= 0 for all that edges change
(`solver.search.edge_sample`), and where one of two falls their sum does. So linear programming
finds the one that falls on the most edges: the steepest first, then the steepest on those edges on
which none has fallen yet, until there is none. The smallest function that falls on the same edges,
by 1 at least, comes of more linear programs: with the least sum of factors, then without the
columns that it can do without. What floating point says is made whole numbers, and these are held
to every sampled edge in whole numbers.

A sample misses what is rare. So where a number falls to 0 the function must not rise either had it
fallen from the most that its field holds, unless the functions that keep to that, the careful ones,
fall on too few edges. And it is put to the test: descents that keep its value high, and others,
look for an edge that raises it. What they meet joins the sample, until a function stands several
rounds.

No sample proves a function: who cuts by it must hold every edge to it.

Sources: Colón and Sipma, Synthesis of linear ranking functions, TACAS 2001; the steepest on what is
left: Alias, Darte, Feautrier and Gonnord, Multi-dimensional rankings, program termination, and
complexity bounds of flowchart programs, SAS 2010.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import gcd, lcm

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Level
from luckbase.solver.game.game import Game
from luckbase.solver.search.edge_sample import EdgeSample, Ways
from luckbase.solver.search.level_words import words

BANDS = 64
"""Stages that the values sampled are cut into, at most."""
STATES, WIDTH = 4096, 256
"""States met level by level before the first descent, and the most of one level."""
DESCENTS, STEPS = 256, 64
"""Descents of one round, and the steps of each in the first; twice as many in the second, and four
times from the third on."""
CALM, ROUNDS = 3, 12
"""A function that stands so many rounds is taken; and whatever there is after so many in all."""
ENOUGH = 0.5
"""A careful function is taken if it falls on so many of the edges on which any can."""
MARGIN = 1e-9
"""What floating point says is off 0 by more is meant to be."""


def find_level(game: Game, roots: Ints, *, seed: int = 0) -> Level | None:
    """A level of what lies below canonical roots (m, fields), of one function; the same for the
    same seed. None where no function that never rises tells apart states that are not over.

    Of such functions it is one that falls on the most of the sampled edges, or on ENOUGH of those
    and is a careful one (module docstring), with few and small factors.

    Raises StateError for a state with more than `Game.max_edges`.
    """
    sample, rng = EdgeSample(game, roots, seed), np.random.default_rng([seed, 1])
    sample.widen(STATES, WIDTH)
    function, calm = _best(game, sample), 0
    for turn in range(ROUNDS):
        if calm == CALM or _is_hopeless(sample, function):
            break
        new = sample.descend(_ways(sample, function, rng), STEPS << min(turn, 2))
        calm = CALM if not new else calm + 1
        broken = (sample.changes @ function > 0).any()
        if calm == CALM or broken or not function.any():
            again = _best(game, sample)
            calm = calm if (again == function).all() else 0
            function = again
    return _level(game, sample, function) if _cuts(sample, function) else None


def _is_hopeless(sample: EdgeSample, function: Ints) -> bool:
    """Whether the best function is 0, and will be 0 whatever joins the sample: no other is even the
    same at both ends of all its edges."""
    if function.any() or not len(sample.met):
        return not function.any()
    changes, columns = sample.changes.astype(float), len(function)
    return len(changes) >= columns and bool(np.linalg.matrix_rank(changes) == columns)


def _level(game: Game, sample: EdgeSample, function: Ints) -> Level:
    """The level of a function (columns,); so many values are one stage that those sampled, and a
    quarter more below them, make BANDS."""
    count = int((sample.roots @ function).max() - (sample.met @ function).min()) + 1
    width = max(1, -(-count * 5 // (4 * BANDS)))
    return Level(_factors(game, function), width=width, found=True)


def _factors(game: Game, function: Ints) -> dict[str, int]:
    named = zip(game.columns, function.tolist(), strict=True)
    return {name: factor for name, factor in named if factor}


def _ways(sample: EdgeSample, function: Ints, rng: np.random.Generator) -> Ways:
    """The ways of one round of descents: any child, the first, the last; each column pushed up and
    down; several at once; the function up, for its edges to be met where they might raise it, alone
    and with others."""
    columns = len(function)
    spread = np.maximum(np.ptp(sample.met, axis=0), 1)
    pushes, order = np.zeros((DESCENTS, columns)), np.zeros(DESCENTS)
    order[: DESCENTS // 16], order[DESCENTS // 16 : DESCENTS // 8] = 1.0, -1.0
    rest = pushes[DESCENTS // 4 :]
    third = len(rest) // 3
    rest[:] = rng.standard_normal(rest.shape) / spread
    rest[:third] *= rng.random((third, columns)) < 2 / columns
    single = np.concatenate([np.eye(columns), -np.eye(columns)])[:third]
    rest[: len(single)] = single
    rest[-third:] = 0.3 * rest[-third:] + function / max(1, np.abs(function * spread).max())
    return Ways(pushes, order)


# --- functions --------------------------------------------------------------------------------


def _best(game: Game, sample: EdgeSample) -> Ints:
    """The best function int64 (columns,) as far as the sample says: a careful one if it falls often
    enough; 0 where none falls."""
    changes, counts, worst = sample.changes, sample.counts, sample.worst

    def first_of(rows: Ints, weights: Ints) -> Ints:
        functions = _Cone(rows, weights).functions()
        nothing = np.zeros(game.field_count, np.int64)
        return next((each for each in functions if _fits(game, each)), nothing)

    def falls(function: Ints) -> int:
        return int(counts[changes @ function < 0].sum())

    any_one = first_of(changes, counts)
    once = np.ones(len(worst), np.int64)
    careful = first_of(np.concatenate([changes, worst]), np.concatenate([counts, once]))
    enough = falls(careful) >= ENOUGH * falls(any_one)
    return careful if enough and _cuts(sample, careful) >= _cuts(sample, any_one) else any_one


def _cuts(sample: EdgeSample, function: Ints) -> bool:
    """Whether a function (columns,) tells apart any states met that are not over."""
    values = sample.met @ function
    return bool((values != values[:1]).any())


def _fits(game: Game, function: Ints) -> bool:
    """Whether a function's values fit in a word."""
    try:
        words(game.fields, (_factors(game, function),))
    except OptionError:
        return False
    return True


class _Cone:
    """The functions that none of `changes` (k, columns) raises, `counts` (k,) edges each.

    Of the rows of a linear program few matter: those that a solution breaks join the others until
    none is broken, and stay for the next program. Programs are of factors times a scale, as columns
    of money and of turns are of different sizes.
    """

    def __init__(self, changes: Ints, counts: Ints) -> None:
        self.changes, self.counts = changes, counts
        self._most = np.maximum(np.abs(changes).max(axis=0, initial=0), 1)
        ends = [changes.argmin(axis=0), changes.argmax(axis=0)] if len(changes) else []
        self._active = np.unique(np.concatenate([np.empty(0, np.int64), *ends]))

    def functions(self) -> Iterator[Ints]:
        """Functions int64 (columns,): one that falls on the most edges first, then simpler ones."""
        fallen, parts = np.zeros(len(self.changes), bool), []
        while not fallen.all():
            part = self._steepest(fallen)
            if part is None or not (self.changes[~fallen] @ part < 0).any():
                break
            fallen = fallen | (self.changes @ part < 0)
            parts.append((part, fallen))
        for i in range(len(parts), 0, -1):
            smallest = self._smallest(parts[i - 1][1])
            whole = np.array([part for part, _ in parts[:i]]).sum(axis=0)
            yield whole if smallest is None else smallest

    def _steepest(self, fallen: NDArray[np.bool_]) -> Ints | None:
        """The function that falls most in the mean of the edges of changes that are not `fallen`
        (k,), while no column adds more than 1 on any; None where none falls."""
        mean = (self.counts * ~fallen).astype(float) @ self.changes / self._most
        if not mean.any():
            return None
        found = self._minimum(
            mean / np.abs(mean).max(), np.zeros(len(fallen)),
            np.tile([-1.0, 1.0], (len(mean), 1)), self._most,
        )  # fmt: skip
        return None if found is None else _whole(found, self.changes)

    def _smallest(self, falls: NDArray[np.bool_]) -> Ints | None:
        """The function of the least sum of factors that falls, by 1 at least, on the changes that
        `falls` (k,) says, without columns that it can do without; None where none was found."""
        most = np.full(len(self._most), np.inf)
        found = self._least(falls, most)
        if found is None:
            return None
        for column in np.argsort(np.abs(found * self._most)).tolist():
            most[column] = 0.0
            without = self._least(falls, most) if found[column] else found
            if without is None:
                most[column] = np.inf
            else:
                found = without
        return _whole(found, self.changes, falls)

    def _least(self, falls: NDArray[np.bool_], most: Floats) -> Floats | None:
        """The same in floating point, with factors of at most so much (columns,)."""
        columns = len(most)
        cost = 1.0 + 1e-3 * np.arange(columns) / columns  # earlier columns where several will do
        bounds = np.stack([np.zeros(2 * columns), np.tile(most, 2)], axis=1)
        limits, scale = -falls.astype(np.float64), np.ones(columns, np.int64)
        return self._minimum(np.tile(cost, 2), limits, bounds, scale)

    def _minimum(self, cost: Floats, limits: Floats, bounds: Floats, scale: Ints) -> Floats | None:
        """The function (columns,) of the least cost that changes each of `changes` by no more than
        its limit (k,). cost, bounds: of its factors times `scale`; or of those above 0, then of
        minus those below. None where there is none."""
        from scipy.optimize import linprog  # takes a while, and most solves never need it

        columns = len(scale)
        while True:
            rows = self.changes[self._active] / scale
            rows = rows if len(cost) == columns else np.hstack([rows, -rows])
            found = linprog(
                cost, A_ub=rows, b_ub=limits[self._active], bounds=bounds, method="highs-ds"
            )
            if found.status != 0:
                return None
            x = found.x if len(cost) == columns else found.x[:columns] - found.x[columns:]
            function = np.asarray(np.where(np.abs(x) > MARGIN, x, 0.0) / scale)
            over = self.changes @ function - limits
            over[self._active] = 0.0
            broken = np.flatnonzero(over > MARGIN)
            if not len(broken):
                return function
            worst = broken[np.argsort(-over[broken], kind="stable")[:64]]
            self._active = np.union1d(self._active, worst)


def _whole(function: Floats, changes: Ints, falls: NDArray[np.bool_] | None = None) -> Ints | None:
    """Whole numbers that stand to one another as those of `function` (columns,), small ones first,
    that rise on no change and fall on all that `function`, or `falls` (k,), does; None where none
    were found."""
    size = np.abs(function).max()
    if falls is None:
        falls = changes @ function < -MARGIN
    if not falls.any():
        return None
    least = np.abs(function[function != 0.0]).min()
    for most in (1 << i for i in range(15)):
        for unit in (1.0, least, size):
            found = _multiple(function / unit, most)
            if found is not None and _is_kept(found, changes, falls):
                return found
    return None


def _multiple(function: Floats, most: int) -> Ints | None:
    """The least whole multiple of fractions near `function` (columns,) of denominators up to
    `most`; None if it is nothing, or too large to count with."""
    near = [Fraction(x).limit_denominator(most) for x in function.tolist()]
    times = lcm(*(x.denominator for x in near))
    whole = [int(x * times) for x in near]
    common = gcd(*whole)
    if not common or max(map(abs, whole)) // common >= 1 << 40:
        return None
    return np.array([x // common for x in whole])


def _is_kept(function: Ints, changes: Ints, falls: NDArray[np.bool_]) -> bool:
    """Whether no change (k, columns) raises a function, and those of `falls` (k,) all lower it."""
    if np.abs(changes).max(axis=0).astype(float) @ np.abs(function) >= 1 << 62:
        return False
    rises = changes @ function
    return bool((rises <= 0).all() and (rises[falls] < 0).all())
