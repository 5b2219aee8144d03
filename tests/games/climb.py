"""Climb, a made-up dice game for two: how a game is added to luckbase.

Both start at 0. Who is up rests on his step, or rolls a die: a 1 throws him back to 0, anything
else takes him up so many steps, to the summit at most; then the other is up. After so many rounds,
or when somebody stands on the summit, the higher one wins; level is half a win each.
"""

from luckbase.game import Agents, Board, Field, Rules, Section, option, register
from luckbase.solver.game.rules import decision, lead, over, transition

REST, ROLL = 0, 1


class Options(Section):
    summit: int = option(10, 1, 100)
    rounds: int = option(3, 1, 20)
    sides: int = option(6, 2, 20)


class Hill(Board):
    rules: Options = Options()


@transition
def climb(board, state, edges):
    """The state: both steps, then the turns left. The board: summit, sides."""
    summit, sides = board.ints
    one, two, turns = state
    if turns == 0 or max(one, two) == summit:
        first = 0.5 * (1 + (one > two) - (one < two))
        return over(edges, first, 1 - first)
    up = turns % 2  # an even number of turns is left when the first player is up
    lead(edges, state, REST, 1.0)[2] = turns - 1
    for k in range(1, sides + 1):
        child = lead(edges, state, ROLL, 1 / sides)
        child[2] = turns - 1
        child[up] = min(state[up] + k, summit) if k > 1 else 0
    return decision(edges, up)


def rules(board):
    summit, turns = board.rules.summit, 2 * board.rules.rounds
    always = Agents({"roll": lambda game, player, state, actions: actions.index(ROLL)})
    return Rules(
        fields=[Field("steps", length=2, high=summit), Field("turns", high=turns, default=turns)],
        players=2,
        transition=climb,
        numbers=(summit, board.rules.sides),
        max_edges=board.rules.sides + 1,
        actions=("rest", "roll"),
        start={},
        level={"turns": 1},
        capabilities={Agents: always},
    )


register("climb", Hill, rules)
