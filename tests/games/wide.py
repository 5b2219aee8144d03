"""One draw of `n` equally likely tickets, and nothing else: a game of one state."""

from luckbase.game import Field, Rules, chance, lead, over, register, transition
from tests.games import board

Wide = board("Wide", n=(22100, 1, 3000000))


@transition
def wide(board, state, edges):
    n = board.ints[0]
    if state[0] > 0:
        return over(edges, state[0] / n)
    for i in range(n):
        lead(edges, state, 0, 1 / n)[0] = i + 1
    return chance(edges)


def rules(board):
    n = board.rules.n
    return Rules(
        fields=[Field("ticket", high=n, default=0)], players=1, transition=wide, numbers=(n,),
        max_edges=n, actions=("draw",), start={},
    )  # fmt: skip


register("wide", Wide, rules)
