"""Games laid out at random for whom levels are known: four columns, whose meaning is theirs.

A state has a `level`, a `part`, a `spread` and a `spot`. An edge leads to a lower level; or, in the
same one, to a state of the same part that is spread no more. So the true level is `level` falls,
`part` apart, `spread` inside (`Shape.true_level`). Spots may come back: a game has loops, if it
may. Every action may lead lower in some way, so no play goes on forever.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from hypothesis import strategies as st

from luckbase.solver.board.model import Board
from luckbase.solver.game.fields import Field
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import CHANCE, DECISION, JOINT, SIMULTANEOUS, TERMINAL, Level, Rules
from luckbase.solver.search.keys import pack_all
from tests.solver.search.written_out import listed, numbers_of

LEVEL, PART, SPREAD, SPOT = range(4)
NAMES = ("level", "part", "spread", "spot")
SIZE, MOST = 4, 8
"""Actions at most, and edges at most."""
WEIGHTS = ((1.0,), (0.5, 0.5), (0.25, 0.75))
PAYOFFS = (0.0, -0.0, 1.0, 0.25, -1.0)

Spot = tuple[int, int, int, int]


@dataclass(frozen=True)
class Shape:
    """How large a game is, and what may happen in it. order: which column each field of a state is.
    mirrored: columns that are counted from the other end, so that they rise where others fall.
    loops: spots may come back, and then nobody chooses at once. strict: every edge lowers the
    level, by `width` values of it at least.
    bits: of each field in a key."""

    seed: int = 0
    sizes: Spot = (3, 2, 3, 4)
    order: Spot = (LEVEL, PART, SPREAD, SPOT)
    mirrored: tuple[bool, ...] = (False,) * 4
    players: int = 2
    pays: bool = False
    loops: bool = False
    jointly: bool = False
    strict: bool = False
    width: int = 1
    bits: int = 3

    @cached_property
    def true_level(self):
        """The level that the game is laid out by."""
        return Level(
            {"level": self.sign(LEVEL)}, () if self.strict else ({"part": 1},),
            () if self.strict else ({"spread": self.sign(SPREAD)},), self.strict, self.width,
        )  # fmt: skip

    def sign(self, column):
        """1, or -1 where a column is mirrored."""
        return -1 if self.mirrored[column] else 1

    def state(self, spot):
        """The fields of a state of these columns."""
        turned = [
            size - 1 - x if m else x
            for x, size, m in zip(spot, self.sizes, self.mirrored, strict=True)
        ]
        return [turned[column] for column in self.order]


def shapes(**fixed):
    """Shapes of all kinds, but for what is fixed."""

    def sound(shape):
        loops = shape.loops and not shape.strict and shape.players < 3
        jointly = shape.jointly and shape.players == 2 and not loops
        return replace(shape, loops=loops, jointly=jointly)

    size = st.integers(1, 4)
    kinds = {
        "seed": st.integers(0, 1 << 20), "players": st.integers(1, 3), "width": st.integers(1, 2),
        "sizes": st.tuples(st.integers(1, 5), st.integers(1, 3), size, size),
        "order": st.permutations(range(4)).map(tuple),
        "mirrored": st.tuples(*[st.booleans()] * 4),
        **dict.fromkeys(("pays", "loops", "jointly", "strict"), st.booleans()),
        **{name: st.just(value) for name, value in fixed.items()},
    }  # fmt: skip
    return st.builds(Shape, **kinds).map(sound)


class Laid:
    """A game of a shape: its states by columns, and the edges of each, `edges[spot]`."""

    def __init__(self, shape):
        self.shape, self._rng = shape, np.random.default_rng(shape.seed)
        self.spots = list(np.ndindex(*shape.sizes))  # lowest first
        self.kinds = {}
        self.edges = {}
        for spot in self.spots:
            self._lay(spot)

    def _lay(self, spot):
        rng, shape = self._rng, self.shape
        if not self._lower(spot) or rng.random() < 0.1:
            self.kinds[spot] = TERMINAL, -1
            self.edges[spot] = [(0, 1.0, spot, self._pays())]
            return
        kind = int(rng.choice([CHANCE, DECISION, SIMULTANEOUS if shape.jointly else DECISION]))
        actions = sorted(rng.permutation(SIZE + 2)[: rng.integers(1, SIZE + 1)].tolist())
        if kind == CHANCE:
            actions = actions[:1]
        if kind == SIMULTANEOUS:
            actions = [row * JOINT + column for row in range(2) for column in range(2)]
        who = int(rng.integers(shape.players)) if kind == DECISION else -1
        self.kinds[spot] = kind, who
        self.edges[spot] = [edge for action in actions for edge in self._action(spot, action)]

    def _action(self, spot, action):
        weights = WEIGHTS[int(self._rng.integers(len(WEIGHTS)))]
        lower, every = self._lower(spot), self._reached(spot)
        nothing = (0.0,) * self.shape.players
        return [
            (action, weight, self._one(every if k else lower),
             self._pays() if self.shape.pays else nothing)
            for k, weight in enumerate(weights)
        ]  # fmt: skip

    def _one(self, spots):
        return spots[int(self._rng.integers(len(spots)))]

    def _pays(self):
        first = PAYOFFS[int(self._rng.integers(len(PAYOFFS)))]
        return {1: (first,), 2: (first, -first)}.get(
            self.shape.players, (first, 0.5 * first, -first)
        )

    def _stage(self, spot):
        """The stage of a level's value, counted as words count: by what the column holds."""
        value = spot[LEVEL]
        if self.shape.mirrored[LEVEL]:  # its values are counted from the most that its bits hold
            value += (1 << self.shape.bits) - self.shape.sizes[LEVEL]
        return value // self.shape.width

    def _may(self, spot, child):
        if child[LEVEL] < spot[LEVEL] and self._stage(child) < self._stage(spot):
            return True
        if self.shape.strict or child[LEVEL] > spot[LEVEL] or child[PART] != spot[PART]:
            return False
        return child[SPREAD] <= spot[SPREAD]

    def _lower(self, spot):
        """What an edge may lead to that goes on to lower states only."""
        return [
            c for c in self.spots
            if self._may(spot, c) and (c[0], c[2], c[3]) < (spot[0], spot[2], spot[3])
        ]  # fmt: skip

    def _reached(self, spot):
        if not self.shape.loops:
            return self._lower(spot)
        return [c for c in self.spots if self._may(spot, c)]

    # --- as luckbase knows it ----------------------------------------------------------------

    @cached_property
    def game(self):
        """The game; its own `max_edges` is `MOST`."""
        shape = self.shape
        sizes = [shape.sizes[column] for column in shape.order]
        by_state = {tuple(shape.state(spot)): spot for spot in self.spots}
        states = [
            (*self.kinds[spot], [(action, weight, shape.state(child), paid)
                                 for action, weight, child, paid in self.edges[spot]])
            for spot in map(by_state.__getitem__, np.ndindex(*sizes))
        ]  # fmt: skip
        rules = Rules(
            fields=[
                Field(NAMES[column], high=shape.sizes[column] - 1, bits=shape.bits)
                for column in shape.order
            ],
            players=shape.players, transition=listed, numbers=numbers_of(sizes, states),
            max_edges=MOST, actions=str, payoff_range=(-100.0, 100.0), pays=shape.pays,
            simultaneous=shape.jointly,
        )  # fmt: skip
        return Game(Board(game="laid-out", name="laid-out"), rules)

    def states(self, spots):
        """The states (n, 4) of some columns."""
        return np.array([self.shape.state(spot) for spot in spots], np.int64).reshape(-1, 4)

    def keys(self, spots):
        """Their keys (n,), ascending."""
        return np.sort(pack_all(self.game.strides, self.states(spots)))

    def roots(self, count):
        """Some states (count, 4) that most others lie below."""
        return self.states(self.spots[-count:])
