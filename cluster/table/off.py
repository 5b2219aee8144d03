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
from luckbase.solver.graph.bellman import ActionValues, Expanded, action_starts


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


def of_step(edges: Expanded, q: ActionValues, off: Floats, least: float) -> Floats:
    """(n,) how far off any payoff of any action of expanded states may be, and `least` at least,
    from those of the children (m,)."""
    return np.maximum(of_states(q, of_actions(edges, off)), least)


def of_taken(q: ActionValues, actors: Ints, off: Floats, taken: Ints, tie: float) -> Floats:
    """(n,) how far off the payoffs of states may be that are those of the actions taken, rows (n,)
    of `q`: there may be better ones, as far as those of actions, off by so much (k,), tell.

    actors: (n,), from 0. tie: the tie tolerance.
    """
    own = q.values[np.arange(len(off)), np.maximum(actors, 0)[q.states]]
    best = taken[q.states]
    either = np.maximum(off, off[best]) > tie
    either &= own + off >= own[best] - off[best] - tie
    either[taken] = True
    apart: NDArray[np.float64] = np.abs(q.values - q.values[best]).max(axis=1) + off
    return of_states(q, np.where(either, apart, 0.0))
