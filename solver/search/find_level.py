"""A level of a game that declares none, guessed from a sample of its edges (`capabilities.Level`).

Small integer combinations of the columns, and of whole fields, are tried on what the edges change.
One that no edge raises and that most edges lower is taken; then the next one, on the edges that
leave it as it is, and so on. Each weighs just more than what the later ones may rise where it
falls. A sample misses what is rare, such as the loss of a great score. So where a number falls to 0
the function may not rise either had it fallen from the most that its field holds, unless that
costs too many of the edges; and the descents that sample push columns, and the function, up.

No sample proves a function: who cuts by it must hold every edge to it.

Source: Alias, Darte, Feautrier and Gonnord, Multi-dimensional rankings, program termination, and
complexity bounds of flowchart programs, SAS 2010.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Level
from luckbase.solver.game.fields import Fields
from luckbase.solver.game.game import Game
from luckbase.solver.search.expand import expand
from luckbase.solver.search.keys import Numbering, fits, pack_all, words

BANDS = 64
"""Stages that the values sampled are cut into, at most."""
DESCENTS, STEPS, EDGES = 256, 64, 1 << 16
"""Descents, fewer where they have more edges; steps in the first round, in later ones up to 4x."""
ROUNDS, CALM, LEAVE = 12, 3, 0.001
"""Rounds, and how many that change nothing are enough; how often a descent begins anew."""
ENOUGH, LARGEST = 0.5, 4
"""Of the edges, how many a careful function must lower; the largest factor that is tried."""


def find_level(game: Game, roots: Ints, *, seed: int = 0) -> Level | None:
    """A level of what lies below canonical roots (m, fields), of one function; the same for the
    same seed. None where no function that never rises tells apart states that are not over.

    Raises StateError for a state with more than `Game.max_edges`.
    """
    rng, roots = np.random.default_rng(seed), np.unique(np.asarray(roots, np.int64), axis=0)
    sample, calm, reach = EdgeSample(game, roots, rng), 0, 0
    function = np.zeros(game.field_count, np.int64)
    for turn in range(ROUNDS):
        is_new = sample.descend(function, STEPS << min(turn, 2))
        before, function = function, sample.best_function()
        values = features(game.fields, sample.met) @ function
        before_reach, reach = reach, int(np.ptp(values)) if len(values) else 0
        same = (function == before).all() and reach and 8 * reach <= 9 * before_reach
        calm = calm + 1 if same else 0
        changes = sample.edges[:, : game.field_count].astype(float)
        hopeless = not function.any() and np.linalg.matrix_rank(changes) == game.field_count
        if calm == CALM or hopeless or not is_new:
            break
    if not reach:
        return None
    count = int((features(game.fields, roots) @ function).max() - values.min()) + 1
    width = max(1, -(-count * 5 // (4 * BANDS)))  # a quarter is kept for what was not met
    return Level(_factors(game.fields, function), width=width, found=True)


def features(fields: Fields, states: Ints) -> Ints:
    """int64 (n, columns) of states (n, columns): their numbers, and of a set how many it has."""
    found, sets = np.array(states, np.int64), [f.is_set for f in fields for _ in f.columns]
    members = found[:, sets]
    most = int(members.max(initial=0)).bit_length()
    found[:, sets] = sum((members >> bit) & 1 for bit in range(most))
    return found


class EdgeSample:
    """Edges below roots. met: int64 (n, columns), states that are not over; edges: int64
    (k, 2 columns), what each changes, then the same had what falls to 0 fallen from the most;
    counts: int64 (k,), of each."""

    def __init__(self, game: Game, roots: Ints, rng: np.random.Generator) -> None:
        self.game, self.roots, self.rng, self._numbers = game, roots, rng, Numbering()
        self._at = roots[
            rng.integers(0, len(roots), max(1, min(DESCENTS, EDGES // game.max_edges)))
        ]
        self.met, self.counts = roots[:0], np.empty(0, np.int64)
        self.edges = np.empty((0, 2 * game.field_count), np.int64)
        self._most = np.array([
            f.high.bit_length() if f.is_set else min(f.bounds[1], 1 << 56)
            for f in game.fields for _ in f.columns
        ])  # fmt: skip

    def descend(self, function: Ints, steps: int) -> bool:
        """So many steps of the descents; whether any state was met for the first time."""
        n, columns, known = len(self._at), self.game.field_count, self._numbers.count
        push = self.rng.standard_normal((n, columns)) * (self.rng.random((n, columns)) < 0.5)
        up = function / max(1, np.abs(function).max())
        fixed = np.concatenate([np.eye(columns), -np.eye(columns), [up, 0 * up]])
        push[: len(fixed)] = fixed[:n]
        push[len(fixed) : 2 * len(fixed)] += 2.0 * up
        starts = np.concatenate([self.roots, self.rng.permutation(self.met)[:n]])
        found = [self._step(push, starts) for _ in range(steps)]
        self.met = np.concatenate([self.met, *(met for met, _, _ in found)])
        rows = np.concatenate([self.edges, *(edges for _, edges, _ in found)])
        counts = np.concatenate([self.counts, *(counts for _, _, counts in found)])
        self.edges, self.counts = _distinct(rows, counts)
        return self._numbers.count > known

    def _step(self, push: Floats, starts: Ints) -> tuple[Ints, Ints, Ints]:
        """One step of all descents: the states met for the first time, their edges and counts."""
        game, rng, at, known = self.game, self.rng, self._at, self._numbers.count
        edges, n = expand(game, at), len(at)
        numbers, first = np.unique(self._numbers.enter(pack_all(game.bits, at)), return_index=True)
        new = np.isin(np.arange(n), first[numbers >= known]) & ~edges.terminal
        owner = np.repeat(np.arange(n), np.diff(edges.first))
        own, below = features(game.fields, at)[owner], features(game.fields, edges.children)
        inner = new[owner] & fits(game.bits, edges.children)
        change = (below - own)[inner]
        worst = np.where((below[inner] == 0) & (change < 0), -self._most, change)
        liked = (below * push[owner]).sum(axis=1) + 1e-9 * rng.random(len(owner))
        strays = (rng.random(n) < 0.1)[owner] & (owner % 2 == 1)
        liked[strays] = rng.random(int(strays.sum()))
        self._at = edges.children[np.lexsort((liked, owner))[edges.first[1:] - 1]]
        ends = edges.terminal | ~fits(game.bits, self._at) | (rng.random(n) < LEAVE)
        self._at[ends] = starts[rng.integers(0, len(starts), int(ends.sum()))]
        return at[new], *_distinct(np.hstack([change, worst]), np.ones(len(change), np.int64))

    def best_function(self) -> Ints:
        """The function int64 (columns,) that falls on the most edges, a careful one if that falls
        on enough; 0 where none falls."""
        (changes, worst), none = np.hsplit(self.edges, 2), np.zeros_like(self.counts)
        rows, counts = np.concatenate([changes, worst]), np.concatenate([self.counts, none])
        careful, other = (
            _ranked(self.game.fields, *of) for of in ((rows, counts), (changes, self.counts))
        )
        falls = [self.counts @ (changes @ function < 0) for function in (careful, other)]
        states = features(self.game.fields, self.met)
        cuts = [len(states) > 0 and np.ptp(states @ function) > 0 for function in (careful, other)]
        return careful if falls[0] >= ENOUGH * falls[1] and cuts[0] >= cuts[1] else other


def _distinct(rows: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """The rows (k, columns), each once, and their counts."""
    mix = np.random.default_rng(64).integers(-(1 << 62), 1 << 62, rows.shape[1])
    codes = (rows * mix).sum(axis=1)  # to sort rows takes ten times as long
    _, first, of = np.unique(codes, return_index=True, return_inverse=True)
    return rows[first], np.bincount(of, counts, len(first)).astype(np.int64)


def _candidates(fields: Fields) -> Ints:
    """Functions int64 (c, columns) of small factors, the simplest first."""
    columns, units, at = len(fields.columns), [], 0
    if columns <= 3:
        found: Ints = np.array(list(product(range(LARGEST, -LARGEST - 1, -1), repeat=columns)))
    else:
        for field in fields:
            own = np.eye(columns, dtype=np.int64)[at : at + field.length]
            units += [own.sum(axis=0), *own]
            at += field.length
        two = [a * x + b * y for i, x in enumerate(units) for y in units[:i]
               for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1), (2, 1), (1, 2))]  # fmt: skip
        found = np.concatenate([units, np.negative(units), two])
    return found[np.argsort(np.abs(found).sum(axis=1), kind="stable")]


def _ranked(fields: Fields, rows: Ints, counts: Ints) -> Ints:
    """The function (columns,) that no row (k, columns) raises, of candidates one after another that
    each lower the most, by counts (k,), of what those before leave as it is; 0 where none does."""
    parts, left, candidates = [], np.arange(len(rows)), _candidates(fields)
    while True:
        kept = candidates
        for start in range(0, len(left), 1024):
            kept = kept[(rows[left[start : start + 1024]] @ kept.T <= 0).all(axis=0)]
        falls = counts[left] @ (rows[left] @ kept.T < 0)
        if not falls.any():
            break
        parts.append(kept[falls.argmax()])
        left = left[rows[left] @ parts[-1] == 0]
    for count in range(len(parts), 0, -1):
        function: Ints = parts[count - 1]
        for part in parts[: count - 1][::-1]:
            fall = -(rows @ part)
            rise = (rows @ function)[fall > 0] // fall[fall > 0]
            function = function + part * (rise.max(initial=0) + 1)
        if _fits(fields, function, rows) and (rows @ function <= 0).all():
            return function
    return np.zeros(len(fields.columns), np.int64)


def _fits(fields: Fields, function: Ints, rows: Ints) -> bool:
    """Whether a function's values fit in a word, and what rows change of it in 63 bits."""
    largest = np.abs(rows).max(axis=0, initial=0).tolist()
    try:
        words(fields, (_factors(fields, function),))
    except OptionError:
        return False
    size: int = sum(abs(x) * y for x, y in zip(function.tolist(), largest, strict=True))
    return size < 1 << 62


def _factors(fields: Fields, function: Ints) -> dict[str, int]:
    named = zip(fields.columns, function.tolist(), strict=True)
    return {name: factor for name, factor in named if factor}
