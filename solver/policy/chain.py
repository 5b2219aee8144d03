"""A profile of policies turns a game into a Markov chain: the states it comes to, and the chances.

Only what the profile can come to from some roots is expanded: an action that a policy never takes
leads nowhere. Where both players choose at once the chances of their choices are multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import SearchLimitError, StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.transition import CHANCE, DECISION, JOINT, SIMULTANEOUS
from luckbase.solver.policy.visits import NeverEnds, visits
from luckbase.solver.search.bellman import JOINTLY, MIXED, action_starts
from luckbase.solver.search.depth_first import Fixed
from luckbase.solver.search.expand import expand
from luckbase.solver.search.keys import Keys, Numbering, pack_all, unpack_all

Decider = Callable[[Game, int, Ints, list[Ints]], list[Floats]]
"""decide(game, player, states (k, fields), actions of each) -> chances of each."""

PIECE = 20_000
"""States expanded at a time."""
MAX_STATES = 20_000_000


@dataclass(frozen=True)
class Chain:
    """What a profile can come to from a root: n states, the root first, m edges.

    keys: uint64 (n,). first: int64 (n + 1,), state x has edges first[x] .. first[x + 1], none where
    the game is over. children: int32 (m,). chances: float64 (m,), positive, summing to 1 a state
    (where a player has no policy, to 1 an action). actions: int64 (m,). rewards: float64
    (m, players). payoffs: float64 (n, players), of states that are over, else 0. actors: int64
    (n,), who decides, -1 where nobody does, JOINTLY where both do.
    fixed: the chances of the states' actions where they are fixed.
    """

    game: Game
    keys: Keys
    first: Ints
    children: NDArray[np.int32]
    chances: Floats
    actions: Ints
    rewards: Floats
    payoffs: Floats
    actors: Ints
    fixed: Fixed

    @property
    def over(self) -> NDArray[np.bool_]:
        """bool (n,): the states that are over."""
        return np.equal(np.diff(self.first), 0)

    @cached_property
    def owners(self) -> Ints:
        """int64 (m,): the state of each edge."""
        return np.repeat(np.arange(len(self.keys)), np.diff(self.first))

    def states(self, numbers: Ints) -> Ints:
        """The states (k, fields) of numbers (k,)."""
        found: Ints = unpack_all(self.game.bits, np.ascontiguousarray(self.keys[numbers]))
        return found

    def reach(self) -> Floats:
        """float64 (n,): how often a play from state 0 comes to each state; a chance where there are
        no cycles.

        Raises StateError where plays do not end.
        """
        try:
            return visits(self.first, self.children, self.chances)
        except NeverEnds as error:
            state = self.game.describe(self.states(np.array([error.number]))[0])
            raise StateError(
                f"with these agents a play may never end: once at {state} it goes round for ever"
            ) from None


Piece = tuple[Any, ...]
"""Of some states: their counts of edges; children (numbers), chances, actions, rewards, by edge;
payoffs, actors, counts of fixed actions by state; their chances and acts; takers by state."""


def expand_profile(
    game: Game, keys: Keys, deciders: Sequence[Decider | None], numbering: Numbering
) -> Piece:
    """Where a profile goes from the states with these keys; children get their numbers."""
    states = unpack_all(game.bits, keys)
    edges = expand(game, states)
    owner, at = action_starts(edges)
    group = np.searchsorted(at, np.arange(len(owner)), side="right") - 1
    chosen = np.ones(len(at))
    fixed = np.zeros(len(states), bool)
    bounds = np.searchsorted(owner[at], np.arange(len(states) + 1))
    several = np.diff(bounds) > 1
    actors = np.where(edges.kinds == DECISION, edges.actors, -1)
    for player, decide in enumerate(deciders):
        mine = np.flatnonzero(several & (actors == player))
        if decide is None or not len(mine):
            continue
        listed = [edges.actions[at[bounds[x] : bounds[x + 1]]] for x in mine]
        for x, taken in zip(mine, decide(game, player, states[mine], listed), strict=True):
            chosen[bounds[x] : bounds[x + 1]] = taken
        fixed[mine] = True
    acts, takers = np.full(len(at), MIXED), np.full(len(states), -1)
    both = np.flatnonzero(edges.kinds == SIMULTANEOUS)
    if len(both):
        places = [(int(x), slice(bounds[x], bounds[x + 1])) for x in both]
        _fix_jointly(game, deciders, states, places, edges.actions[at], chosen, acts, takers)
        fixed[both] = [d is not None for d in deciders[:2]].count(True) > 0
    over = edges.terminal
    nobody = (edges.kinds == CHANCE) & (edges.actors < 0)
    actions = np.where(nobody[owner], -1, edges.actions)  # chance takes none that a player has
    weights: Floats = edges.weights * chosen[group]
    kept = (weights > 0) & ~over[owner]
    payoffs = np.zeros((len(states), game.players))
    payoffs[over] = edges.rewards[edges.first[:-1][over]]
    children = numbering.enter(pack_all(game.bits, np.ascontiguousarray(edges.children[kept])))
    counts = np.bincount(owner[kept], minlength=len(states))
    part_of = fixed[owner[at]]
    deciding = np.where(edges.kinds == SIMULTANEOUS, JOINTLY, actors)
    return (
        counts, children, weights[kept], actions[kept], edges.rewards[kept], payoffs,
        np.where(several, deciding, -1), np.where(fixed, np.diff(bounds), 0),
        chosen[part_of], acts[part_of], takers,
    )  # fmt: skip


def walk_profile(
    game: Game, roots: Ints, deciders: Sequence[Decider | None], max_states: int = MAX_STATES
) -> Iterator[tuple[Keys, Piece]]:
    """`explore_profile` a piece at a time: the keys of some new states, and where they lead."""
    numbering, done = Numbering(), 0
    roots = np.ascontiguousarray(roots).reshape(-1, game.field_count)
    numbering.enter(pack_all(game.bits, roots))
    while done < numbering.count:
        if numbering.count > max_states:
            raise SearchLimitError(
                f"these agents can come to more than {max_states} states; give fewer, or a state "
                "nearer the end"
            )
        keys = numbering.keys_at(np.arange(done, min(done + PIECE, numbering.count)))
        done += len(keys)
        yield keys, expand_profile(game, keys, deciders, numbering)


def explore_profile(
    game: Game, roots: Ints, deciders: Sequence[Decider | None], max_states: int = MAX_STATES
) -> Chain:
    """What a profile can come to from one root (fields,) or several (k, fields), which are the
    first states of the chain; None for a player who maximises.

    Raises SearchLimitError, OptionError as `asking`.
    """
    walked, parts = zip(*walk_profile(game, roots, deciders, max_states), strict=True)
    keys = np.concatenate(walked)
    counts, children, chances, actions, rewards, payoffs, actors, sizes, policy, acts, takers = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    first, policy_first = (np.concatenate([[0], np.cumsum(c)]) for c in (counts, sizes))
    return Chain(
        game, keys, first, children, chances, actions, rewards, payoffs, actors,
        Fixed(keys, policy_first, policy, acts, takers),
    )  # fmt: skip


def _fix_jointly(
    game: Game, deciders: Sequence[Decider | None], states: Ints,
    places: list[tuple[int, slice]], actions: Ints, chosen: Floats, acts: Ints, takers: Ints,
) -> None:  # fmt: skip
    """Write the chances of the joint actions at simultaneous states, `places` being their numbers
    and where their actions stand: products of the two players', or one's where the other maximises;
    and then to which of their actions each belongs."""
    row, column = np.divmod(actions, JOINT)
    both = [x for x, _ in places]
    sides = []
    for _, g in places:  # every pair is there, rows slowest
        across = int((row[g] == row[g.start]).sum())
        sides.append((row[g][::across], column[g.start : g.start + across]))
    fixed = [
        None if decide is None else decide(game, player, states[both], [s[player] for s in sides])
        for player, decide in enumerate(deciders[:2])
    ]
    for i, (x, g) in enumerate(places):
        rows, columns = (np.ones(len(side)) for side in sides[i])
        if fixed[0] is not None:
            rows = fixed[0][i]
        if fixed[1] is not None:
            columns = fixed[1][i]
        chosen[g] = np.outer(rows, columns).ravel()
        if (fixed[0] is None) != (fixed[1] is None):
            taker = 0 if fixed[0] is None else 1
            takers[x] = taker
            acts[g] = row[g] if taker == 0 else column[g]
