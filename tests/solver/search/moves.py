"""Heaps that a player changes by one of a few moves, wherever they stay within their bounds; it is
over where no move does. One more edge may be planted, from one state to another."""

from luckbase.solver.board.model import Board
from luckbase.solver.game.fields import MAX_VALUE, Field
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import Rules, decision, lead, over, transition


@transition
def _move(board, state, edges):  # type: ignore
    """The board: the highest heap, whether an edge is planted, from where, to where, the moves."""
    high, planted, n = board.ints[0], board.ints[1], state.size
    rows = board.ints[2:].reshape(-1, n)
    for row in range(2, len(rows)):
        inside = True
        for i in range(n):
            inside = inside and 0 <= state[i] + rows[row, i] <= high
        if inside:
            child = lead(edges, state, row, 1.0)
            for i in range(n):
                child[i] += rows[row, i]
    here = planted == 1
    for i in range(n):
        here = here and state[i] == rows[0, i]
    if here:
        child = lead(edges, state, 0, 1.0)
        for i in range(n):
            child[i] = rows[1, i]
    if edges.about[2] == 0:
        return over(edges, 0.0)
    return decision(edges, 0)


def moves_of(*moves, high=15, bits=(), planted=None):
    """The game of these moves. bits: what a key has room for, of each heap; as much as `high`."""
    heaps = len(moves[0])
    ends = planted or ([0] * heaps, [0] * heaps)
    wide = [Field(f"heap_{i + 1}", high=min((1 << size) - 1, MAX_VALUE), bits=size)
            for i, size in enumerate(bits)]  # fmt: skip
    rules = Rules(
        fields=wide or [Field("heap", length=heaps, high=high)],
        players=1,
        transition=_move,
        numbers=[high, int(planted is not None), *(x for row in (*ends, *moves) for x in row)],
        max_edges=len(moves) + 1,
        actions=str,
    )
    return Game(Board(game="moves", name="moves"), rules)
