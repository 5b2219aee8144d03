"""Edges of a game met on the way down from some roots: what each changes, for who can not wait for
all of them (`solver.search.find_level`).

What an edge **changes** is the features of its child less those of its parent. A state's features:
its numbers, and of a set how many it holds.

Plays seldom come to what is rare and matters most, the loss of a great score. So the weights of the
edges are not looked at: descents take every child alike, or always the first edge, or the last, or
the one that pushes some features furthest up or down. Whichever they take, all edges of a state
count. A descent begins at a root, or at a state that another has met.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.fields import Fields
from luckbase.solver.game.game import Game
from luckbase.solver.search.bellman import Expanded, expand
from luckbase.solver.search.keys import fits, pack_all

MOST_ROOM = 1 << 16
"""Edges that states expanded at once may have."""
MOST_EDGES = 1 << 20
"""Edges looked at by one `widen` or `descend`, about."""
STRAY = 0.15
"""How often every other descent takes any child: the nearest way up is not always the highest."""
LEAVE = 0.01
"""How often a descent ends before the game does, which may have no end."""


def features(fields: Fields, states: Ints) -> Ints:
    """The features int64 (n, columns) of canonical states (n, columns)."""
    found, at = np.array(states, np.int64), 0
    for field in fields:
        if field.is_set:
            held = found[:, at]
            found[:, at] = sum((held >> bit) & 1 for bit in range(field.high.bit_length()))
        at += field.length
    return found


def _most(fields: Fields) -> Ints:
    """The greatest feature int64 (columns,) of a state that has a key; of huge ones 2**62."""
    most = [
        field.high.bit_length()
        if field.is_set
        else min((field.high - field.shift) // field.unit, (1 << field.width) - 1)
        for field in fields
        for _ in field.columns
    ]
    return np.array([min(one, 1 << 62) for one in most])


@dataclass(frozen=True)
class Ways:
    """How n descents go on. pushes: float64 (n, columns), the child is taken whose features times
    these are greatest, by lot where several are. order: float64 (n,), 1 takes the last edge, -1 the
    first; 0 where it does not matter."""

    pushes: Floats
    order: Floats

    def __len__(self) -> int:
        return len(self.order)


class EdgeSample:
    """Edges below canonical roots (m, fields), more with each `widen` and `descend`; the same for
    the same seed.

    Raises StateError for a state with more than `Game.max_edges`.
    """

    def __init__(self, game: Game, roots: Ints, seed: int) -> None:
        self.game = game
        self._rng = np.random.default_rng(seed)
        self._roots = np.unique(np.asarray(roots, np.int64), axis=0)
        self._most = max(1, min(256, MOST_ROOM // game.max_edges))
        self._edges = 0
        self._seen: set[int] = set()
        self._met: list[Ints] = []
        self._mix = np.random.default_rng(64).integers(-(2**63), 2**63 - 1, game.field_count)
        self._codes = np.empty(0, np.int64)
        self._changes = np.empty((0, game.field_count), np.int64)
        self._counts = np.empty(0, np.int64)
        self._emptied = np.empty((0, game.field_count), bool)

    @property
    def changes(self) -> Ints:
        """int64 (k, columns): what edges change, each once, none that changes nothing."""
        return self._changes

    @property
    def counts(self) -> Ints:
        """int64 (k,): how many edges change that."""
        return self._counts

    @property
    def worst(self) -> Ints:
        """int64 (j, columns): what edges that emptied columns, leaving 0 in the child, would have
        changed had there been the most that the field holds: in each column of the edge, and in all
        of them."""
        most = -_most(self.game.fields)
        alone = np.argwhere(self._emptied)
        each = self._changes[alone[:, 0]]
        each[np.arange(len(each)), alone[:, 1]] = most[alone[:, 1]]
        several = np.flatnonzero(self._emptied.sum(axis=1) > 1)
        both = np.where(self._emptied[several], most, self._changes[several])
        return np.unique(np.concatenate([each, both]), axis=0)

    @property
    def met(self) -> Ints:
        """int64 (n, columns): the features of the states met that are not over, each state once."""
        empty = np.empty((0, self.game.field_count), np.int64)
        return np.concatenate([empty, *(features(self.game.fields, one) for one in self._met)])

    @property
    def roots(self) -> Ints:
        """int64 (m, columns): the features of the roots."""
        return features(self.game.fields, self._roots)

    def widen(self, states: int, width: int) -> None:
        """Go through about so many states level by level, at most `width` of a level."""
        level, stop = self._roots, self._edges + MOST_EDGES
        past: set[int] = set()
        while len(level) and len(past) < states and self._edges < stop:
            if len(level) > width:
                level = level[np.sort(self._rng.choice(len(level), width, replace=False))]
            below = [
                self._children(self._meet(level[at : at + self._most]))
                for at in range(0, len(level), self._most)
            ]
            past.update(self._keys(level))
            level = np.unique(np.concatenate(below), axis=0)
            level = level[[key not in past for key in self._keys(level)]]

    def descend(self, ways: Ways, steps: int) -> int:
        """So many steps of every way, fewer where states have very many edges; returns how many
        states were met for the first time."""
        before = len(self._seen)
        for at in range(0, len(ways), self._most):
            here = slice(at, at + self._most)
            share = MOST_EDGES * len(ways.order[here]) // len(ways)
            self._descend(Ways(ways.pushes[here], ways.order[here]), steps, share)
        return len(self._seen) - before

    def _descend(self, ways: Ways, steps: int, most: int) -> None:
        states, stop = self._begin(len(ways), 0.0), self._edges + most
        for _ in range(steps):
            edges = self._meet(states)
            states = edges.children[self._take(ways, edges)]
            ends = edges.terminal | ~fits(self.game.bits, states)
            ends |= self._rng.random(len(ends)) < LEAVE
            if ends.any():
                states[ends] = self._begin(int(ends.sum()), 0.5)
            if self._edges >= stop:
                break

    def _begin(self, count: int, among_met: float) -> Ints:
        """States (count, fields) in which descents begin: roots, a share of them states met."""
        found = self._roots[self._rng.integers(0, len(self._roots), count)]
        if self._met:
            for x in np.flatnonzero(self._rng.random(count) < among_met).tolist():
                some = self._met[self._rng.integers(len(self._met))]
                found[x] = some[self._rng.integers(len(some))]
        return found

    def _take(self, ways: Ways, edges: Expanded) -> Ints:
        """The edge (n,) that each way takes."""
        counts = np.diff(edges.first)
        owner = np.repeat(np.arange(len(counts)), counts)
        strays = (self._rng.random(len(counts)) < STRAY) & (np.arange(len(counts)) % 2 == 1)
        held = features(self.game.fields, edges.children)
        liked = (held * ways.pushes[owner]).sum(axis=1)
        liked += ways.order[owner] * np.arange(len(owner))
        liked[strays[owner]] = 0.0
        order = np.lexsort((self._rng.random(len(owner)), liked, owner))
        return order[edges.first[1:] - 1]

    def _children(self, edges: Expanded) -> Ints:
        inner = ~np.repeat(edges.terminal, np.diff(edges.first))
        below = edges.children[inner]
        return below[fits(self.game.bits, below)]

    def _keys(self, states: Ints) -> list[int]:
        found: list[int] = pack_all(self.game.bits, np.ascontiguousarray(states)).tolist()
        return found

    def _meet(self, states: Ints) -> Expanded:
        """The edges of states (n, fields), which are noted."""
        edges = expand(self.game, states)
        self._edges += len(edges.weights)
        new = np.zeros(len(states), bool)
        for x, key in enumerate(self._keys(states)):
            new[x] = key not in self._seen
            self._seen.add(key)
        new &= ~edges.terminal
        if new.any():
            self._met.append(states[new])
            owner = np.repeat(np.arange(len(states)), np.diff(edges.first))
            # a child that no key holds is refused by who searches: no function is asked of it
            at = np.flatnonzero(new[owner] & fits(self.game.bits, edges.children))
            children = features(self.game.fields, edges.children[at])
            self._note(features(self.game.fields, states)[owner[at]], children)
        return edges

    def _note(self, parents: Ints, children: Ints) -> None:
        changes = children - parents
        some = changes.any(axis=1)
        changes, emptied = changes[some], (children == 0)[some] & (changes[some] < 0)
        # by one number each: to sort rows takes ten times as long
        codes = (changes * self._mix).sum(axis=1)
        codes, first, of, counts = np.unique(
            codes, return_index=True, return_inverse=True, return_counts=True
        )
        place = np.searchsorted(self._codes, codes)
        known = place < len(self._codes)
        known[known] = self._codes[place[known]] == codes[known]
        self._counts[place[known]] += counts[known]
        new = ~known
        if new.any():
            self._codes = np.insert(self._codes, place[new], codes[new])
            self._changes = np.insert(self._changes, place[new], changes[first[new]], axis=0)
            self._counts = np.insert(self._counts, place[new], counts[new])
            self._emptied = np.insert(self._emptied, place[new], False, axis=0)
        np.logical_or.at(self._emptied, np.searchsorted(self._codes, codes)[of], emptied)
