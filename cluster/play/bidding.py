"""States of a play in which both choose at once: their matrix game, and what each choice is worth.

With A the game's payoffs under optimal play afterwards, v its value and x, y an optimal lottery of
each side (`solver.matrix_game.certified`), player 1's choice r is worth (A y)_r to them and costs v
- (A y)_r, which is never below 0; player 2's choice c costs (x A)_c - v.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from luckbase.cluster import words
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import choice_names
from luckbase.solver.game.game import Game
from luckbase.solver.graph.bellman import Expanded, joint

if TYPE_CHECKING:
    from luckbase.cluster.table.lookup import Lookup


@dataclass(frozen=True)
class Meeting:
    """The matrix game of one state; every tuple is over the two players.

    names, actions: of each player's choices, ascending. lotteries: an optimal one of each. against:
    float64, a player's payoffs by their choices against the other's lottery. values: of the state.
    gap: how far the bounds that the lotteries prove lie apart.
    """

    names: tuple[list[str], list[str]]
    actions: tuple[Ints, Ints]
    lotteries: tuple[Floats, Floats]
    against: tuple[Floats, Floats]
    values: tuple[float, float]
    gap: float

    def costs(self, player: int, slack: float) -> Floats:
        """What each choice of a player (from 0) costs them; 0 where that is below the slack."""
        lost = self.values[player] - self.against[player]
        return np.where(lost > slack + self.gap, lost, 0.0)

    def lines(self, player: int, payoff: str, slack: float) -> list[str]:
        """For a player: what each choice is worth and costs, and its chance in their lottery."""
        names, costs = self.names[player], self.costs(player, slack)
        wide = max(map(len, names))
        said = [f"costs {words.cost(cost)}" if cost else "best" for cost in costs.tolist()]
        worth = [f"{value:z.6f}" for value in self.against[player].tolist()]
        most, least = max(map(len, said)), max(map(len, worth))
        return [
            f"  {payoff}: {self.values[player]:z.6f} for optimal play; by choice, against "
            "the other's, and its chance in yours:",
            *(
                f"    {names[k]:{wide}}  {worth[k]:>{least}}  {said[k]:{most}}  "
                f"chance {self.lotteries[player][k]:.6f}"
                for k in range(len(names))
            ),
        ]


def meeting(game: Game, state: Ints, edges: Expanded, table: Lookup) -> Meeting:
    """The matrix game of a state (fields,) in which both choose at once, and of its edges,
    priced by a table."""
    from luckbase.solver.matrix_game import certified as matrix_game

    q = table.action_values(edges)
    one = joint(q.actions, q.values)
    solved = matrix_game.solve(one.games[None])
    x, y = solved.row_strategies[0], solved.column_strategies[0]
    value = float(solved.values[0])
    named = words.typed(game.describe(state))
    return Meeting(
        (choice_names(game, named, 0, len(x)), choice_names(game, named, 1, len(y))),
        (one.rows, one.columns),
        (x, y),
        (one.games @ y, one.total - x @ one.games),
        (value, one.total - value),
        float(solved.gaps[0]),
    )
