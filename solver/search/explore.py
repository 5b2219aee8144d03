"""What is known of a search before it is solved: which states lie below some roots, depth by depth;
about how many; and a level that cuts them into stages, where the game declares none.

**Estimate.** Up to `EXACT_STATES` states are counted. A game may know a formula
(`SearchHints.states_below`). Else the levels counted are gone on with: from one to the next (two
side by side are taken as one, for rolls and choices take turns) the logarithm of their states rises
by less and less, then falls. By how much less (the bend), over the last `RISES` levels, says how
the bell goes on; as it grows less too, only `BEND` of it is taken. Measured on searches of Press
Your Luck (8 to 13 % of 3 to 34 million states counted, in units of 250, 500 and 1000): 0.4 to 2.1
times as many; Pig, Skunk, Pig by rounds: 0.3 to 2.7; at most what the bounds of the fields allow.

Where less than `FAR` of the states was counted no more is said than what there are **more than**:
with `STEEP` times the bend, and no more levels than nine plays at random in ten still take. On all
of these, cut at any level with `TELLING` states before it: 0.02 to 1.3 times as many as there are.

**Level** (`find_level`; `capabilities.Level`), guessed from a sample of edges. Small integer
combinations of columns, and of whole fields, are tried on what edges change. One that none raises
and that lowers most is taken; then the next one, on those that it leaves as they are, and so on;
each weighs just more than what the later ones may rise where it falls. Samples miss what is rare, a
great loss: where a number falls to 0 the function may not rise either had it fallen from the most
of its field, unless that costs half of the changes; descents push columns and function up.

Source: Alias, Darte, Feautrier and Gonnord, Multi-dimensional rankings, program termination, and
complexity bounds of flowchart programs, SAS 2010.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import njit, types
from luckbase.solver.errors import OptionError, SearchLimitError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Level, SearchHints
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import NUMBERS_TYPE, TERMINAL, TRANSITION
from luckbase.solver.search import expand as expansion
from luckbase.solver.search import keys as hashing
from luckbase.solver.search.keys import Keys, fits, merged, pack_all, unpack_all, words
from luckbase.solver.sentences import count, counted, many, option

BANDS = 64  # stages at most, of values a quarter wider than those sampled
DESCENTS, EDGES = 256, 1 << 16  # descents, fewer where a step of theirs has more edges
STEPS, ROUNDS, CALM = 64, 12, 3  # of the first round; rounds; so many without change are enough
INNER, OVER, KNOWN = 0, 1, 2  # kinds of a state met: not over, over, known and so not expanded
PIECE = 1 << 16  # states that `known` is asked of at once
KnownStates = Callable[[Ints], NDArray[np.bool_]]  # of states (n, fields), which another table has
_i, _span = types.int64, types.UniTuple(types.int64, 3)
_TYPES = TRANSITION, NUMBERS_TYPE, expansion.ROOM_TYPE, _i[:, ::1], _span, hashing.n1, hashing.u2


@njit(types.UniTuple(_i, 2)(*_TYPES, types.uint8[::1]))
def _expand_level(transition, board, room, strides, span, slots, keys, kinds):
    """Enter the children of states i .. stop - 1, `span` being (i, stop, states met) and `kinds`
    those of a level up to stop; returns (next to expand, states met).

    Stops early where there may not be room for one more state's children. Where edges break the
    rules the first is BROKEN, the state in room.at.
    """
    edges = room.edges
    below, rewards, about = edges.children, edges.rewards, edges.about
    max_edges, mask = below.shape[0], slots.size - 1
    state = np.empty(strides.shape[1], np.int64)
    i, stop, count = span
    first = stop - kinds.size
    while i < stop and count + max_edges <= keys.shape[0]:
        if kinds[i - first] == INNER:
            hashing.unpack(strides, keys[i, 0], state)
            n = expansion.expand_one(transition, board, state, edges, room)
            if n < 0:
                return expansion.BROKEN, count
            if about[0] == TERMINAL:
                kinds[i - first] = OVER
                rewards[0] = 0.0
            for k in range(n):
                key = hashing.pack(strides, below[k])
                hashed = hashing.hash_of(key)
                slot = hashing.find_from(slots, keys, key, hashed, hashed & mask)
                if slots[slot] < 0:
                    slots[slot] = hashed & ~(mask >> 1) | count
                    keys[count, 0] = key
                    count += 1
        i += 1
    return i, count


class Explorer:
    """The levels below canonical roots (m, fields), one more with each `deeper`: states whose
    shortest way from a root has d edges stand from first[d] to first[d + 1]. What is `known` is not
    expanded. Raises StateError for a root that has no key."""

    def __init__(
        self, game: Game, roots: Ints, known: KnownStates | None = None, max_states: int = 1 << 30
    ) -> None:
        self.game, self.roots, self.known, self.max_states = game, roots, known, max_states
        self._numbering, self._room = hashing.Numbering(), expansion.room_of(game)
        self._numbering.enter(expansion.keys_of_roots(game, roots))
        self.first, self._kinds = [0, self._numbering.count], list[NDArray[np.uint8]]()

    @property
    def keys(self) -> Keys:
        """uint64 (n,): the states met so far, by level; a copy."""
        return self._numbering.keys[: self.first[-1]]

    @property
    def kinds(self) -> NDArray[np.uint8]:
        """uint8: INNER, OVER or KNOWN, of each state of the levels that were expanded."""
        return np.concatenate(self._kinds)

    def deeper(self) -> bool:
        """Expand the last level; False where nothing new lies below it. Raises SearchLimitError
        beyond `max_states`, GameError for a state whose edges break the rules."""
        game, numbering, (start, stop) = self.game, self._numbering, self.first[-2:]
        kinds = np.zeros(stop - start, np.uint8)
        for at in range(start, stop, PIECE):
            if self.known is not None:
                keys = np.ascontiguousarray(numbering.rows[at : min(stop, at + PIECE), 0])
                kinds[at - start :][: len(keys)][self.known(unpack_all(game.strides, keys))] = KNOWN
        while start < stop:
            numbering.reserve(numbering.count + game.max_edges)
            with expansion.expanding(game, self._room):
                start, numbering.count = _expand_level(
                    game.transition, game.numbers, self._room, game.strides,
                    (start, stop, numbering.count), numbering.slots, numbering.rows, kinds,
                )  # fmt: skip
            if start < 0:
                raise expansion.refused(game, self._room)
            if numbering.count > self.max_states:
                raise SearchLimitError(
                    f"the search has found {many(numbering.count, 'state')} in "
                    f"{many(len(self.first) - 1, 'level')} "
                    f"and is not finished; the limit is {self.max_states:,}"
                )
        self._kinds.append(kinds)
        if numbering.count > stop:
            self.first.append(numbering.count)
        return numbering.count > stop

    def far_more_than(self, max_states: int) -> int:
        """How many states it will have met at the least, having met so many of each level, if that
        is more than `MARGIN` times `max_states`; else, or where it can not be told, 0."""
        sizes, most = np.diff(self.first).tolist(), MARGIN * max_states
        if sum(sizes) < TELLING or _more_than(sizes, LONGEST) <= most:
            return 0
        below = _more_than(sizes, self._levels)
        return below if below > most else 0

    @cached_property
    def _levels(self) -> int:  # once: the plays are the same at every level
        return int(np.quantile(plays(self.game, self.roots, self.known)[1], 0.1))


def explore(
    game: Game, roots: Ints, *, known: KnownStates | None = None, max_states: int = 1 << 30,
    on_level: Callable[[int, int], None] | None = None,
) -> Explorer:  # fmt: skip
    """All levels below canonical roots (m, fields), as an `Explorer` at its end; on_level: told
    how many states were met, in how many levels. Raises as `Explorer`, and SearchLimitError as soon
    as it can be told that there are far more than `max_states`."""
    explorer = Explorer(game, roots, known, max_states)
    while explorer.deeper():
        if below := explorer.far_more_than(max_states):
            where = "below" if known is None else "above the table"
            raise SearchLimitError(
                f"more than {counted(below, 'state')} lie {where}; the search may find "
                f"{count(max_states)} ({option('max_states')})"
            )
        if on_level is not None:
            on_level(explorer.first[-1], len(explorer.first) - 1)
    return explorer


EXACT_STATES, EXACT_EDGES = 3_000_000, 60_000_000
"""States up to which they are counted (two seconds), and edges that they may have by
`Game.max_edges`: no clock decides what is found."""
RISES, BEND, STEEP, LEAST_BEND = 4, 0.5, 2.0, 1e-3
"""Levels over which the bend is taken; of it, so much is taken for the estimate, and for what there
are more than; the least that it is taken for."""
FAR, TELLING, MARGIN = 1 / 25, 50_000, 2
"""Where less of the states than this was counted, it is only said what there are more than. States
that a search has met before they tell that there are far too many: so many times."""
LOOKED_AT = 400_000
"""States that are met before there are held to be not far too many."""
PLAYS, LONGEST, PLAY_EDGES = 512, 400, 1 << 16
"""Plays at random, the steps of each, and the edges that are looked at by a step, at most."""


@dataclass(frozen=True)
class Estimate:
    """About how many states lie below some roots, the roots included."""

    states: int  # those that a table has; of an estimate some of them may be over
    how: str  # counted, formula or estimated
    at_least: bool  # there are more than so many, maybe many times as many
    keys: Keys  # uint64 (k,): some of them, of all levels


def estimate(game: Game, roots: Ints) -> Estimate:
    """About how many states lie below canonical roots (m, fields); the same for the same roots.
    Raises as `Explorer`, but for SearchLimitError."""
    roots = np.unique(np.asarray(roots, np.int64).reshape(-1, game.field_count), axis=0)
    limit = max(1, min(EXACT_STATES, EXACT_EDGES // game.max_edges))
    explorer = Explorer(game, roots, max_states=limit)
    try:
        while explorer.deeper():
            pass
        states = int(np.count_nonzero(explorer.kinds != OVER))
        return Estimate(states, "counted", False, explorer.keys)
    except SearchLimitError:
        keys, steps = plays(game, roots)
    keys, formula = merged([keys, explorer.keys]), game.own(SearchHints).states_below
    if formula is not None:
        below = max(formula(root) for root in roots)
        return Estimate(max(len(keys), round(below)), "formula", False, keys)
    sizes = np.diff(explorer.first).tolist()
    guess = min(_bell(sizes, BEND, LONGEST), np.prod(np.ptp(game.fields.bounds, axis=0) + 1.0))
    is_far = FAR * guess > explorer.first[-1]
    states = _more_than(sizes, int(np.quantile(steps, 0.1))) if is_far else round(guess)
    return Estimate(max(len(keys), limit, states), "estimated", is_far, keys)


def far_more_than(game: Game, root: Ints, max_states: int) -> int:
    """How many states lie below a root (fields,) at the least, where a few of them tell that there
    are far more than `max_states`; else 0."""
    explorer, below = Explorer(game, root[None]), 0
    while not below and explorer.first[-1] <= LOOKED_AT and explorer.deeper():
        below = explorer.far_more_than(max_states)
    return below


def _more_than(sizes: Sequence[int], levels: int) -> int:
    """How many states there are at the least in so many levels, if these are the first ones."""
    return int(min(_bell(sizes, STEEP, levels - len(sizes) + 1), 1e18))


def _bell(sizes: Sequence[int], share: float, further: int) -> float:
    """How many states there are if so many levels follow on these at most, and a share of the bend
    goes on."""
    pairs = np.convolve(sizes, [0.5, 0.5], "valid")
    rises = np.diff(np.log(pairs))
    if len(rises) <= RISES:
        return float("inf") if share < 1.0 else float(sum(sizes))
    bend = share * max((rises[-1 - RISES] - rises[-1]) / RISES, LEAST_BEND)
    after = np.arange(1, max(further, 0) + 1)
    with np.errstate(over="ignore"):
        sizes_after = pairs[-1] * np.exp(rises[-1] * after - bend * after * (after + 1) / 2)
    return float(sum(sizes) + sizes_after.sum())


def plays(game: Game, roots: Ints, known: KnownStates | None = None) -> tuple[Keys, Ints]:
    """Plays at random from canonical roots (m, fields), any edge as likely as another: the keys
    (k,) of the states on the way, and how many steps each play takes until it is over, or comes to
    a state that is `known`."""
    rng = np.random.default_rng(1)
    count = min(PLAYS, max(16, PLAY_EDGES // game.max_edges))
    states, visited = roots[rng.integers(0, len(roots), count)], []
    alive, steps = np.arange(count), np.full(count, LONGEST)
    for step in range(LONGEST):
        visited.append(pack_all(game.strides, np.ascontiguousarray(states)))
        edges = expansion.expand(game, states)
        taken = edges.first[:-1] + np.floor(rng.random(len(states)) * np.diff(edges.first))
        children = edges.children[taken.astype(np.int64)]
        ended = edges.terminal | ~hashing.fits(game.strides, children)
        if known is not None:
            ended |= known(states)
        steps[alive[ended]] = step
        states, alive = children[~ended], alive[~ended]
        if not len(states):
            break
    return merged(visited), steps


# --- a level that no edge raises -----------------------------------------------------------------


def find_level(game: Game, roots: Ints, *, seed: int = 0) -> Level | None:
    """A level of what lies below canonical roots (m, fields), of one function; one seed, one level.
    None where no function that never rises tells apart states that are not over. Raises StateError
    for a state with more than `Game.max_edges`."""
    rng, columns = np.random.default_rng(seed), game.field_count
    states, changes = np.asarray(roots, np.int64), np.empty((0, 2 * columns), np.int64)
    function, values, calm = np.zeros(columns, np.int64), np.zeros(1, np.int64), 0
    for turn in range(ROUNDS):
        before, reach, known = function, np.ptp(values), len(states)
        samples = [(states, changes), *descents(game, states, function, STEPS << min(turn, 2), rng)]
        states, changes = (_distinct(np.concatenate(part)) for part in zip(*samples, strict=True))
        field_changes = changes[:, :columns]
        for rows in (np.concatenate(np.hsplit(changes, 2)), field_changes):
            function = _ranked(game, rows, len(field_changes))
            values = features(game, states) @ function
            if np.ptp(values) and np.mean(field_changes @ function < 0) > 0.5:
                break
        calm = (calm + 1) * bool((function == before).all() and 0 < 8 * np.ptp(values) <= 9 * reach)
        many = not function.any() and len(field_changes) >= columns
        hopeless = many and np.linalg.matrix_rank(field_changes) == columns
        if calm == CALM or hopeless or len(states) == known:
            break
    if not np.ptp(values):
        return None
    falls = {name: int(x) for name, x in zip(game.columns, function, strict=True) if x}
    return Level(falls, width=-(-5 * int(np.ptp(values) + 1) // (4 * BANDS)), found=True)


def features(game: Game, states: Ints) -> Ints:
    """int64 (n, columns) of states (n, columns): their numbers, and of a set how many it has."""
    numbers, sets = np.array(states, np.int64), [f.is_set for f in game.fields for _ in f.columns]
    numbers[:, sets] = np.bitwise_count(numbers[:, sets])
    return numbers


def descents(
    game: Game, starts: Ints, function: Ints, steps: int, rng: np.random.Generator
) -> Iterator[tuple[Ints, Ints]]:
    """Some steps of descents: of each, the states (m, columns) that are not over, and what their
    edges change of features (k, 2 columns), and would where they fall to 0 from the most."""
    n, columns = min(DESCENTS, 1 + EDGES // game.max_edges), game.field_count
    greatest = np.minimum(features(game, game.fields.bounds[1:]), 1 << 56)
    push = rng.standard_normal((n, columns)) * (rng.random((n, columns)) < rng.random((n, 1)) ** 2)
    push[::2] += 4.0 * function / max(1, np.abs(function).max())
    at = rng.choice(starts, n)
    for _ in range(steps):
        edges = expansion.expand(game, at)
        owner = np.repeat(np.arange(n), np.diff(edges.first))
        inner = fits(game.strides, edges.children) & ~edges.terminal[owner]
        before, below = features(game, at)[owner], features(game, edges.children)
        change = (below - before)[inner]
        worst = np.where((below[inner] == 0) & (change < 0), -greatest, change)
        yield at[~edges.terminal], _distinct(np.hstack([change, worst]))
        liked = (below * push[owner]).sum(axis=1) + 1e-9 * rng.random(len(owner))
        best = np.flatnonzero(liked == np.maximum.reduceat(liked, edges.first[:-1])[owner])
        taken = best[np.searchsorted(best, edges.first[1:]) - 1]
        at = np.where(inner[taken, None], edges.children[taken], rng.choice(starts, n))


def _distinct(rows: Ints) -> Ints:
    """Each of some rows (k, columns) once; to sort them would take ten times as long."""
    mix = np.random.default_rng(64).integers(-(1 << 62), 1 << 62, rows.shape[1])
    return rows[np.unique((rows * mix).sum(axis=1), return_index=True)[1]]


def _ranked(game: Game, rows: Ints, counted: int) -> Ints:
    """The function (columns,) that no row (k, columns) raises, of simple ones that each lower the
    most of the first rows, of those that the ones before leave as they are; 0 where none does."""
    identity = np.eye(game.field_count, dtype=np.int64)
    ends = np.cumsum([f.length for f in game.fields])
    units = [*identity, *(part.sum(axis=0) for part in np.split(identity, ends[:-1]))]
    signs = ((1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1), (2, 1), (1, 2))
    simple = np.array([a * x + b * y for x, y in combinations(units, 2) for a, b in signs])
    if len(identity) <= 3:
        simple = np.array(list(product(range(4, -5, -1), repeat=len(identity))))
    simple = simple[np.argsort(np.abs(simple).sum(axis=1), kind="stable")]
    function, left = np.zeros(len(identity), np.int64), np.arange(len(rows))
    while True:
        kept = simple[(rows[left[:1024]] @ simple.T <= 0).all(axis=0)]
        kept = kept[(rows[left] @ kept.T <= 0).all(axis=0)]
        falls = (rows[left[left < counted]] @ kept.T < 0).sum(axis=0)
        if not falls.any():
            return function
        part, fall = kept[falls.argmax()], -(rows @ function)
        left = left[rows[left] @ part == 0]
        rise = (rows @ part)[fall > 0] // fall[fall > 0]
        longer = function.astype(object) * (int(rise.max(initial=0)) + 1) + part
        try:
            words(game.fields, (dict(zip(game.columns, longer, strict=True)),))
        except OptionError:
            return function
        function = longer.astype(np.int64)
