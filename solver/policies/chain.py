"""A profile of policies turns a game into a Markov chain: the states that it reaches, and chances.

Only states that the profile can reach from given roots are expanded: an action that a policy never
takes is ignored. If both players choose at once, the chances of their choices are multiplied. A
player without a policy maximises, and keeps all their actions. `Chain.solve` solves the chain by
backward induction, and states that return to each other by `solver.search.cycles`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import CorruptTableError, SearchLimitError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import CHANCE, DECISION, JOINT, SIMULTANEOUS
from luckbase.solver.policies.agents import Decider
from luckbase.solver.search.bellman import JOINTLY, MIXED, action_starts
from luckbase.solver.search.expand import expand
from luckbase.solver.search.keys import Keys, Numbering, pack_all, unpack_all
from luckbase.solver.search.stage_kernels import LEAF, Order, Patterns, ordered
from luckbase.solver.search.sweep import room_for_sweep, solve_in_order
from luckbase.solver.sentences import option

PIECE = 20_000
"""States expanded at a time."""
MAX_STATES = 20_000_000


@dataclass(frozen=True)
class Chain:
    """The states that a profile can reach from its roots: n states, the roots first, m edges.

    A state has edges first[x] .. first[x + 1] - 1; a terminal state has none. While it is built, a
    piece of the chain has the children's numbers in the complete chain.
    """

    game: Game
    keys: Keys  # (n,)
    first: Ints  # (n + 1,)
    children: NDArray[np.int32]  # (m,), the number of the state
    chances: Floats  # (m,), positive, with sum 1 for each choice
    actions: Ints  # (m,), -1 if no player acts
    rewards: Floats  # (m, players)
    choices: Ints
    """(m,): edges of a state with the same number are one choice. If all its players have policies,
    a state has one choice."""
    payoffs: Floats  # (n, players), of terminal states, else 0
    actors: Ints  # (n,), the player who decides, -1 for none, JOINTLY for both
    takers: Ints  # (n,), the players among them who maximise

    @property
    def over(self) -> NDArray[np.bool_]:
        """bool (n,): the terminal states."""
        return np.equal(np.diff(self.first), 0)

    @cached_property
    def owners(self) -> Ints:
        """int64 (m,): the state of each edge."""
        return np.repeat(np.arange(len(self.keys)), np.diff(self.first))

    def states(self, numbers: NDArray[np.integer]) -> Ints:
        """Return the states (k, fields) of numbers (k,)."""
        return unpack_all(self.game.strides, np.ascontiguousarray(self.keys[numbers]))

    def solve(self) -> SolvedChain:
        """Return the payoffs of every state.

        Raises StateError for a cycle that is not supported (`solver.search.cycles`), GameError for
        a payoff out of the game's range.
        """
        game, n = self.game, len(self.keys)
        rewards = self.rewards if game.pays else np.empty((0, game.players))
        patterns = Patterns(
            np.empty(0, np.int32), np.empty(0, np.uint64), self.first,
            np.where(self.over, LEAF, self.takers), self.chances, self.choices, rewards,
            self.payoffs,
        )  # fmt: skip
        order, loops = ordered(self.first, self.children)
        states = Order(order, self.first, np.arange(n, dtype=np.int32), self.children)
        out = room_for_sweep(n, n, game.players)
        solve_in_order(game, self.keys, patterns, states, loops, out, game.tie_tolerance)
        return SolvedChain(self, out.values[:, 1:], out.best, float(out.errors.max(initial=0.0)))


@dataclass(frozen=True)
class SolvedChain:
    """A chain with its states' payoffs."""

    chain: Chain
    values: Floats  # (n, players)
    best: Ints  # (n,), the best choice (`Chain.choices`), MIXED for a lottery
    error: float  # a bound on the error of every payoff

    def look_up(self, keys: Keys) -> Ints:
        """Return the numbers (k,) of states of the chain, from their keys (k,)."""
        return self._by_key[np.searchsorted(self.chain.keys, keys, sorter=self._by_key)]

    @cached_property
    def _by_key(self) -> Ints:
        return np.argsort(self.chain.keys)


class Stored(NamedTuple):
    """The stored payoffs and best actions of n states."""

    payoffs: Floats  # (n, players)
    paid: NDArray[np.bool_]  # (n,), whether they exist
    best: NDArray[np.int16]  # (n,), indices into `names`; -1 for none
    names: Sequence[str]  # of actions

    def part(self, at: slice) -> Stored:
        """Return the same of some of the states."""
        return Stored(self.payoffs[at], self.paid[at], self.best[at], self.names)


LookUp = Callable[[Ints], Stored]
"""look_up(states (n, fields)) -> what is stored of them."""


def expand_profile(
    game: Game, keys: Keys, deciders: Sequence[Decider | None], numbering: Numbering,
    stored: Stored | None = None,
) -> Chain:  # fmt: skip
    """Expand the states with these keys for a profile; children are entered in `numbering`.

    stored: of these states. States with payoffs have no edges, like terminal ones; at a stored best
        action nobody else decides.

    Raises CorruptTableError for a stored action that its state does not have.
    """
    states = unpack_all(game.strides, keys)
    edges = expand(game, states)
    over, payoffs = edges.terminal, np.zeros((len(states), game.players))
    payoffs[over] = edges.rewards[edges.first[:-1][over]]
    if stored is not None:
        payoffs[stored.paid], over = stored.payoffs[stored.paid], over | stored.paid
    owner, starts = action_starts(edges)
    bounds = np.searchsorted(owner[starts], np.arange(len(states) + 1))
    several = (np.diff(bounds) > 1) & ~over
    jointly = (edges.kinds == SIMULTANEOUS) & ~over
    takers = np.where(jointly, JOINTLY, np.where(edges.kinds == DECISION, edges.actors, -1))
    actors = np.where(several, takers, -1)
    chosen, choices = np.ones(len(starts)), edges.actions[starts]
    if stored is not None:
        decided = several & (stored.best >= 0)
        _take_stored(game, states, decided, stored, owner[starts], chosen, choices)
        several &= ~decided
    for player, decide in enumerate(deciders):
        deciding = np.flatnonzero(several & (takers == player))
        if decide is None or not len(deciding):
            continue
        listed = [edges.actions[starts[bounds[x] : bounds[x + 1]]] for x in deciding]
        for x, taken in zip(deciding, decide(game, player, states[deciding], listed), strict=True):
            chosen[bounds[x] : bounds[x + 1]] = taken
            choices[bounds[x] : bounds[x + 1]] = MIXED
    if jointly.any():
        both = np.flatnonzero(jointly)
        spans = [slice(bounds[x], bounds[x + 1]) for x in both]
        takers[both] = _fix_jointly(game, deciders, states[both], spans, chosen, choices)
    group = np.searchsorted(starts, np.arange(len(owner)), side="right") - 1
    no_actor = (edges.kinds == CHANCE) & (edges.actors < 0)
    actions = np.where(no_actor[owner], -1, edges.actions)  # chance takes no player's action
    weights: Floats = edges.weights * chosen[group]
    kept = np.flatnonzero((weights > 0) & ~over[owner])
    if jointly.any():  # edges of one choice must be consecutive
        kept = kept[np.lexsort((np.where(jointly[owner], choices[group], 0)[kept], owner[kept]))]
    children = numbering.enter(pack_all(game.strides, np.ascontiguousarray(edges.children[kept])))
    first = np.searchsorted(owner[kept], np.arange(len(states) + 1))
    return Chain(
        game, keys, first, children, weights[kept], actions[kept], edges.rewards[kept],
        choices[group][kept], payoffs, actors, takers,
    )  # fmt: skip


def _take_stored(
    game: Game, states: Ints, decided: NDArray[np.bool_], stored: Stored, owners: Ints,
    chosen: Floats, choices: Ints,
) -> None:  # fmt: skip
    """Write the chances of the actions of `decided` states, 1 of the stored ones, and their
    choices. owners: the state of each action. Raises CorruptTableError."""
    named = {game.action_name(action): action for action in set(choices.tolist()) if action >= 0}
    best = np.array([*(named.get(name, -2) for name in stored.names), -2])[stored.best]
    at = np.flatnonzero(decided[owners])
    chosen[at] = choices[at] == best[owners[at]]
    choices[at] = MIXED
    taken = np.bincount(owners[at], chosen[at], len(states))
    if (wrong := np.flatnonzero(decided & (taken == 0))).size:
        state = game.say(states[wrong[0]])
        raise CorruptTableError(f"the stored best action at {state} is not allowed there")


def _fix_jointly(
    game: Game, deciders: Sequence[Decider | None], states: Ints, spans: list[slice],
    chosen: Floats, choices: Ints,
) -> Ints:  # fmt: skip
    """Write the chances of the joint actions of simultaneous states (k, fields), and their choices.

    They are at `spans` of `chosen`: products of the two players' chances, or one player's if the
    other maximises. Returns the player who maximises (k,).
    """
    sides = []
    for g in spans:  # every pair exists, rows slowest
        row, column = np.divmod(choices[g], JOINT)
        across = int((row == row[0]).sum())
        sides.append((row[::across], column[:across]))
    chances = [
        None if decide is None else decide(game, player, states, [s[player] for s in sides])
        for player, decide in enumerate(deciders[:2])
    ]
    free = [player for player, chance in enumerate(chances) if chance is None]
    if len(free) == 2:
        return np.full(len(states), JOINTLY)
    for i, g in enumerate(spans):
        rows, columns = (
            np.ones(len(side)) if chance is None else chance[i]
            for side, chance in zip(sides[i], chances, strict=True)
        )
        chosen[g] = np.outer(rows, columns).ravel()
        choices[g] = np.divmod(choices[g], JOINT)[free[0]] if free else MIXED
    return np.full(len(states), free[0] if free else -1)


def explore_profile(
    game: Game, roots: Ints, deciders: Sequence[Decider | None], max_states: int = MAX_STATES,
    look_up: LookUp | None = None,
) -> Chain:  # fmt: skip
    """Return the chain of a profile from a root (fields,) or several (k, fields), its first states.

    deciders: None for a player who maximises.
    look_up: called once for all states at the same distance from the roots (`expand_profile`).

    Raises SearchLimitError, and OptionError as `asking` does.
    """
    numbering, done, pieces = Numbering(), 0, list[Chain]()
    roots = np.ascontiguousarray(roots).reshape(-1, game.field_count)
    numbering.enter(pack_all(game.strides, roots))
    while done < numbering.count:
        stop = numbering.count
        keys, stored = numbering.keys_at(np.arange(done, stop)), None
        if look_up is not None:
            stored = look_up(unpack_all(game.strides, keys))
        for first in range(0, stop - done, PIECE):
            if numbering.count > max_states:
                raise SearchLimitError(
                    f"these agents can come to more than {max_states:,} states; allow more with "
                    f"{option('max_states')}, or give a state nearer the end"
                )
            at = slice(first, first + PIECE)
            here = None if stored is None else stored.part(at)
            pieces.append(expand_profile(game, keys[at], deciders, numbering, here))
        done = stop
    columns = {
        field.name: np.concatenate([getattr(piece, field.name) for piece in pieces])
        for field in fields(Chain)[1:]
    }
    counts = np.concatenate([np.diff(piece.first) for piece in pieces])
    columns["first"] = np.concatenate([[0], np.cumsum(counts)])
    return Chain(game, **columns)
