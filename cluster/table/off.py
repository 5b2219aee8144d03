"""How far off payoffs may be that are worked out from others, a step of the rules above them.

A mean of payoffs is as exact as they are. But where two actions are closer than that tells, either
may be the best one, and those who do not decide get what it gives them: so far their payoffs may be
off. Payoffs that are off by no more than the tie tolerance tell every decision: what is closer is
tied, by the rules.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.graph.bellman import ActionValues, Expanded, action_starts, chosen


def of_actions(edges: Expanded, off: Floats) -> Floats:
    """(k,) how far off the payoffs of every action of expanded states may be, if those of the
    children, in the edges' order, may be off by so much (m,)."""
    starts = action_starts(edges)[1]
    mean = np.add.reduceat(edges.weights * off, starts)
    low, high = np.minimum.reduceat(off, starts), np.maximum.reduceat(off, starts)
    found: Floats = np.clip(mean, low, high)  # without the rounding of the sum
    return found


def of_states(q: ActionValues, off: Floats) -> Floats:
    """(n,) how far off any payoff of any action of states may be, from those of actions (k,)."""
    found: Floats = np.maximum.reduceat(off, q.first[:-1])
    return found


def of_taken(q: ActionValues, actors: Ints, off: Floats, taken: Ints, tie: float) -> Floats:
    """(n,) how far off the payoffs of states may be that are those of the actions taken, rows (n,)
    of `q`: there may be better ones, as far as those of actions, off by so much (k,), tell.

    actors: (n,), from 0. tie: the tie tolerance.
    """
    apart: NDArray[np.float64] = np.abs(q.values - q.values[taken[q.states]]).max(axis=1) + off
    return of_states(q, np.where(_may_be_best(q, actors, off, taken, tie), apart, 0.0))


def untold(
    q: ActionValues, actors: Ints, off: Floats, taken: Ints, tie: float
) -> NDArray[np.bool_]:
    """(n,) whether an action other than the one taken may be the best one; as `of_taken`."""
    found = np.add.reduceat(_may_be_best(q, actors, off, taken, tie), q.first[:-1], dtype=np.int64)
    more: NDArray[np.bool_] = found > 1
    return more


def _may_be_best(
    q: ActionValues, actors: Ints, off: Floats, taken: Ints, tie: float
) -> NDArray[np.bool_]:
    """(k,) the actions one of which is the best one by the rules, each state's taken one with them:
    all that may be as good where one of these is off by more than the tie tolerance; where none is,
    what is tied is tied, and the first of them is the best."""
    own = q.values[np.arange(len(off)), np.maximum(actors, 0)[q.states]]
    best = taken[q.states]
    may: NDArray[np.bool_] = own + off >= own[best] - off[best] - tie
    may[taken] = True
    may &= np.logical_or.reduceat(may & (off > tie), q.first[:-1])[q.states]
    may[taken] = may[chosen(q, actors, tie)] = True
    return may
