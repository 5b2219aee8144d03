"""Pig for three: the state is the banked scores, whose turn it is and the points of the turn."""

from luckbase.game import Field, Rules, decision, lead, over, transition
from tests.games import board

Piglets = board("Piglets", goal=(100, 2, 200))


@transition
def piglets(board, state, edges):
    """A 1 ends the turn without points."""
    goal, up, turn = board.ints[0], state[3], state[4]
    for player in range(3):
        if state[player] >= goal:
            return over(edges, 1.0 * (player == 0), 1.0 * (player == 1), 1.0 * (player == 2))
    if turn > 0:
        child = lead(edges, state, 0, 1.0)
        child[up], child[3], child[4] = min(state[up] + turn, goal), (up + 1) % 3, 0
    for face in range(1, 7):
        child = lead(edges, state, 1, 1 / 6)
        if face == 1:
            child[3], child[4] = (up + 1) % 3, 0
        elif state[up] + turn + face >= goal:
            child[up], child[4] = goal, 0
        else:
            child[4] = turn + face
    return decision(edges, up)


def rules(board):
    goal = board.rules.goal
    return Rules(
        fields=[
            Field("scores", length=3, high=goal, default=0), Field("up", high=2, default=0),
            Field("turn", high=goal, default=0),
        ],
        players=3, transition=piglets, numbers=(goal,), max_edges=7, actions=("hold", "roll"),
        start={},
    )  # fmt: skip
