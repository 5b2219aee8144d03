"""How what people count of a play is spread: the dollars of the winner, the length in spins.

What is counted a game says (`solver.game.capabilities.Counted`): numbers of the state in which a
play ends, and events on the way. The chances of a profile's chain (`solver.policy.chain`) give

* **of an end**: how often a play comes to each state that is over, whatever went round before.
* **of events**: with m_c(x) how often a play comes to x when the event has happened c times, E the
  chances of edges with the event, N of those without, and e the states in which it begins::

      m_0 = e + N' m_0,      m_c = E' m_(c-1) + N' m_c

  A play that ends in x after c events adds m_c(x) to the chance of c. N has no cycle, or the event
  may never happen again and its count has no such form. It ends when all that is left to
  come is less than `TAIL`.

Where there are too many states, plays are counted one by one (`Tally`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import njit, types
from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Counted
from luckbase.solver.game.game import Game
from luckbase.solver.policy.chain import Chain, ordered
from luckbase.solver.sentences import on_command_line

TAIL = 1e-12
"""What may be left out of the chances of a count."""
MAX_COUNT = 100_000
SLACK = 1e-9
"""Of a quantile's share, for rounding."""
_i1, _i4, _f1, _b1 = types.int64[::1], types.int32[::1], types.float64[::1], types.boolean[::1]


@dataclass(frozen=True)
class Spread:
    """How one number is spread. name: what is counted. player: whose, from 1; None for the play's
    own. values: float64 (k,), ascending, and their chances (k,). is_chance: whether it is true or
    not, 1 or 0. error: the standard error of the mean; 0 where the chances are exact."""

    name: str
    player: int | None
    values: Floats
    chances: Floats
    is_chance: bool
    error: float = 0.0

    @property
    def mean(self) -> float:
        return float(self.values @ self.chances)

    def quantile(self, share: float) -> float:
        """The least value that a play has at most, or less, with the chance `share`."""
        at = int(np.searchsorted(np.cumsum(self.chances), share - SLACK))
        return float(self.values[min(at, len(self.values) - 1)])


def _merged(name: str, player: int | None, values: NDArray[Any], weights: Floats) -> Spread:
    distinct, where = np.unique(values, return_inverse=True)
    chances: Floats = np.bincount(where.ravel(), weights, len(distinct)).astype(np.float64)
    kept = chances > 0
    return Spread(name, player, distinct[kept].astype(np.float64), chances[kept],
                  values.dtype == np.bool_)  # fmt: skip


def of_ends(counted: Counted, states: Ints, weights: Floats) -> list[Spread]:
    """Of states that are over (n, fields), with how likely each is (n,)."""
    spreads = []
    for name, count in counted.ends.items():
        numbers = count(states)
        if numbers.ndim == 1:
            spreads.append(_merged(name, None, numbers, weights))
            continue
        for player, column in enumerate(numbers.T):
            spreads.append(_merged(name, player + 1, np.ascontiguousarray(column), weights))
    return spreads


def events_of(counted: Counted, chain: Chain, below: Ints) -> list[NDArray[np.bool_]]:
    """bool (m,) of each event: the edges on which it happens. below: the states (m, fields) that
    they lead to."""
    states = chain.states(chain.owners)
    return [happens(states, chain.actions, below) for happens in counted.events.values()]


@njit(types.float64(_i1, _i4, _f1, _b1, _i4, _f1, _f1))
def _flow_on(first, children, chances, event, order, now, after):
    """Let what is in each state flow on until the event: `now` (n,) is emptied, what comes to each
    state by an edge with it is added to `after`. Returns what ends without one. order: what edges
    without the event lead to stands first."""
    ended = 0.0
    for place in range(order.size - 1, -1, -1):
        x = order[place]
        part = now[x]
        if part == 0.0:
            continue
        now[x] = 0.0
        if first[x] == first[x + 1]:
            ended += part
        for k in range(first[x], first[x + 1]):
            if event[k]:
                after[children[k]] += part * chances[k]
            else:
                now[children[k]] += part * chances[k]
    return ended


def of_event(chain: Chain, event: NDArray[np.bool_], starts: Floats) -> Floats:
    """float64 (k,): the chances that an event, on edges (m,), happens 0, 1, … times in a play that
    begins in the first states with chances `starts`. Raises StateError where it has no form."""
    n = len(chain.keys)
    quiet = ~event
    first = np.concatenate([[0], np.cumsum(np.bincount(chain.owners[quiet], minlength=n))])
    order, loops = ordered(first, chain.children[quiet])
    if loops:
        run = on_command_line("; run: luckbase simulate", "")
        raise StateError(f"a play may go round without what is to be counted of it{run}")
    now, after, chances = np.zeros(n), np.zeros(n), list[float]()
    now[: len(starts)] = starts
    while len(chances) < MAX_COUNT:
        chances.append(
            _flow_on(chain.first, chain.children, chain.chances, event, order, now, after)
        )
        if after.sum() < TAIL:
            return np.array(chances)
        now, after = after, now
    raise StateError(f"a play may have {MAX_COUNT:,} or more of what is to be counted of it")


def distribution(chain: Chain, starts: Floats | None = None) -> list[Spread]:
    """How everything that the game counts is spread in plays of a chain that begin in its first
    states with chances `starts`. Raises OptionError where the game counts nothing, and as
    `of_event`, `Chain.reach`."""
    counted = chain.game.need(Counted)
    begins = np.ones(1) if starts is None else starts
    over = np.flatnonzero(chain.over)
    spreads = of_ends(counted, chain.states(over), chain.reach(begins)[over])
    below = chain.states(chain.children)
    for name, event in zip(counted.events, events_of(counted, chain, below), strict=True):
        chances = of_event(chain, event, begins)
        spreads.append(_merged(name, None, np.arange(len(chances)), chances))
    return spreads


class Tally:
    """Plays counted one by one, some at a time: the states that they end in, and events (n,
    events)."""

    def __init__(self, game: Game) -> None:
        self.counted, self.games = game.need(Counted), 0
        self.parts: dict[int, list[Spread]] = {}

    def add(self, start: int, states: Ints, events: Floats) -> None:
        """Plays that have ended, numbered from `start`: their last states (n, fields), and how
        often each event was (n, events)."""
        ones = np.ones(len(states))
        self.games += len(states)
        part = of_ends(self.counted, states, ones)
        for name, column in zip(self.counted.events, events.T, strict=True):
            part.append(_merged(name, None, np.ascontiguousarray(column), ones))
        self.parts[start] = part

    def spreads(self) -> list[Spread]:
        """How everything is spread, with the standard errors of the means."""
        return [
            self._whole(each)
            for each in zip(*(self.parts[i] for i in sorted(self.parts)), strict=True)
        ]

    def _whole(self, parts: Sequence[Spread]) -> Spread:
        values = np.concatenate([part.values for part in parts])
        weights = np.concatenate([part.chances for part in parts])
        whole = _merged(parts[0].name, parts[0].player, values, weights)
        whole = replace(whole, chances=whole.chances / self.games, is_chance=parts[0].is_chance)
        variance = whole.chances @ (whole.values - whole.mean) ** 2
        return replace(whole, error=float(np.sqrt(variance / max(self.games - 1, 1))))
