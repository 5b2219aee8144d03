"""Three players in a ring: who is up goes on, or takes a chance to end it; nobody has to."""

from luckbase.solver.board.model import Board
from luckbase.solver.game.fields import Field
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import Rules, decision, lead, over, transition


@transition
def _ring(board, state, edges):
    if state[0] == 3:
        return over(edges, 1.0, 0.0, 0.0)
    after = (state[0] + 1) % 3
    for child, weight, action in ((3, 0.5, 0), (after, 0.5, 0), (3, 0.25, 1), (after, 0.75, 1)):
        lead(edges, state, action, weight)[0] = child
    return decision(edges, state[0])


def ring():
    """The game."""
    rules = Rules(
        fields=[Field("up", high=3)], players=3, transition=_ring, numbers=[0], max_edges=4,
        actions=str,
    )  # fmt: skip
    return Game(Board(game="ring", name="ring"), rules)
