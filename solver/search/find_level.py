"""A level of a game that declares none, guessed from a sample of its edges (`capabilities.Level`).

Small integer combinations of columns, and of whole fields, are tried on what edges change. One that
none raises and that lowers most is taken; then the next one, on those that it leaves as they are,
and so on; each weighs just more than what the later ones may rise where it falls. Samples miss what
is rare, a great loss: where a number falls to 0 the function may not rise either had it fallen from
the most of its field, unless that costs half of the changes; descents push columns and function up.

Source: Alias, Darte, Feautrier and Gonnord, Multi-dimensional rankings, program termination, and
complexity bounds of flowchart programs, SAS 2010.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Level
from luckbase.solver.game.game import Game
from luckbase.solver.search.expand import expand
from luckbase.solver.search.keys import fits, words

BANDS = 64  # stages at most, of values a quarter wider than those sampled
DESCENTS, EDGES = 256, 1 << 16  # descents, fewer where a step of theirs has more edges
STEPS, ROUNDS, CALM = 64, 12, 3  # of the first round; rounds; so many without change are enough


def find_level(game: Game, roots: Ints, *, seed: int = 0) -> Level | None:
    """A level of what lies below canonical roots (m, fields), of one function; one seed, one level.
    None where no function that never rises tells apart states that are not over. Raises StateError
    for a state with more than `Game.max_edges`."""
    rng, columns = np.random.default_rng(seed), game.field_count
    states, changes = np.asarray(roots, np.int64), np.empty((0, 2 * columns), np.int64)
    function, values, calm = np.zeros(columns, np.int64), np.zeros(1, np.int64), 0
    for turn in range(ROUNDS):
        before, reach, known = function, np.ptp(values), len(states)
        found = [(states, changes), *descents(game, states, function, STEPS << min(turn, 2), rng)]
        states, changes = (_distinct(np.concatenate(part)) for part in zip(*found, strict=True))
        own = changes[:, :columns]
        for rows in (np.concatenate(np.hsplit(changes, 2)), own):
            function = _ranked(game, rows, len(own))
            values = features(game, states) @ function
            if np.ptp(values) and np.mean(own @ function < 0) > 0.5:
                break
        calm = (calm + 1) * bool((function == before).all() and 0 < 8 * np.ptp(values) <= 9 * reach)
        hopeless = not function.any() and np.linalg.matrix_rank(own) == columns
        if calm == CALM or hopeless or len(states) == known:
            break
    if not np.ptp(values):
        return None
    falls = {name: int(x) for name, x in zip(game.columns, function, strict=True) if x}
    return Level(falls, width=-(-5 * int(np.ptp(values) + 1) // (4 * BANDS)), found=True)


def features(game: Game, states: Ints) -> Ints:
    """int64 (n, columns) of states (n, columns): their numbers, and of a set how many it has."""
    found, sets = np.array(states, np.int64), [f.is_set for f in game.fields for _ in f.columns]
    bits = range(int(game.fields.most.max()).bit_length())
    found[:, sets] = sum(found[:, sets] >> bit & 1 for bit in bits)
    return found


def descents(
    game: Game, starts: Ints, function: Ints, steps: int, rng: np.random.Generator
) -> Iterator[tuple[Ints, Ints]]:
    """Some steps of descents: of each, the states (m, columns) that are not over, and what their
    edges change of features (k, 2 columns), and would where they fall to 0 from the most."""
    n, columns = min(DESCENTS, 1 + EDGES // game.max_edges), game.field_count
    most = np.minimum(features(game, game.fields.bounds[1:]), 1 << 56)
    push = rng.standard_normal((n, columns)) * (rng.random((n, columns)) < rng.random((n, 1)) ** 2)
    push[::2] += 4.0 * function / max(1, np.abs(function).max())
    at = rng.choice(starts, n)
    for _ in range(steps):
        edges = expand(game, at)
        owner = np.repeat(np.arange(n), np.diff(edges.first))
        inner = fits(game.strides, edges.children) & ~edges.terminal[owner]
        own, below = features(game, at)[owner], features(game, edges.children)
        change = (below - own)[inner]
        worst = np.where((below[inner] == 0) & (change < 0), -most, change)
        yield at[~edges.terminal], _distinct(np.hstack([change, worst]))
        liked = (below * push[owner]).sum(axis=1) + 1e-9 * rng.random(len(owner))
        taken = np.lexsort((liked, owner))[edges.first[1:] - 1]
        at = np.where(inner[taken, None], edges.children[taken], rng.choice(starts, n))


def _distinct(rows: Ints) -> Ints:
    """Each of some rows (k, columns) once; to sort them would take ten times as long."""
    mix = np.random.default_rng(64).integers(-(1 << 62), 1 << 62, rows.shape[1])
    return rows[np.unique((rows * mix).sum(axis=1), return_index=True)[1]]


def _ranked(game: Game, rows: Ints, counted: int) -> Ints:
    """The function (columns,) that no row (k, columns) raises, of simple ones that each lower the
    most of the first rows, of those that the ones before leave as they are; 0 where none does."""
    own, ends = np.eye(game.field_count, dtype=np.int64), np.cumsum([f.length for f in game.fields])
    units = [*own, *(part.sum(axis=0) for part in np.split(own, ends[:-1]))]
    signs = ((1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1), (2, 1), (1, 2))
    simple = np.array([a * x + b * y for x, y in combinations(units, 2) for a, b in signs])
    if len(own) <= 3:
        simple = np.array(list(product(range(4, -5, -1), repeat=len(own))))
    simple = simple[np.argsort(np.abs(simple).sum(axis=1), kind="stable")]
    function, left = np.zeros(len(own), np.int64), np.arange(len(rows))
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
