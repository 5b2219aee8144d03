"""Every round a die is rolled for nothing, and pays ten cents: rounding adds up."""

from luckbase.game import Field, Rules, chance, lead, over, pay, register, transition
from tests.games import board

Dimes = board("Dimes", rounds=(20_000, 1, 5_000_000), sides=(49, 1, 1000))


@transition
def dimes(board, state, edges):
    if state[0] == 0:
        return over(edges, 0.0)
    for _ in range(board.ints[0]):
        lead(edges, state, 0, 1 / board.ints[0])[0] = state[0] - 1
        pay(edges, 0.1)
    return chance(edges)


def rules(board):
    rounds, sides = board.rules.rounds, board.rules.sides
    return Rules(
        fields=[Field("rounds", high=rounds, default=rounds)], players=1, transition=dimes,
        numbers=(sides,), max_edges=sides, actions=("roll",), start={}, pays=True,
        payoff_range=(0, rounds * 0.1 + 1),
    )  # fmt: skip


register("dimes", Dimes, rules)
