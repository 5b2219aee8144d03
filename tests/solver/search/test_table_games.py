"""Games that an author wrote from docs/how-to/own-game.md, against published values."""

import numpy as np
import pytest

import luckbase
from luckbase.game import Game
from luckbase.solver.search.game_graph import Graph
from tests.games import table_games


@pytest.mark.usefixtures("own_games")
def test_one_round_of_undercut():
    """Hofstadter, Metamagical Themas: 10, 26, 13, 16 and 1 of 66."""
    board = table_games.Undercut(game="undercut", name="one", rules={"goal": 1, "points": True})
    luckbase.game.register("undercut", table_games.Undercut, table_games.undercut_rules)
    with luckbase.open(board, in_memory=True) as table:
        answer = table.ask()
    chances = {bid.name: bid.chance for bid in answer.strategies[0]}
    assert chances == pytest.approx(
        {name: part / 66 for name, part in zip("12345", (10, 26, 13, 16, 1), strict=True)}
    )


WIZARD = {
    5: "-.1282 -.0953 -.0615 -.0240 -.0012 -.1194 -.1881 -.2666 -.3134 -.2786",
    9: ".0744 .1208 .1819 .2431 .3171 .1719 .0984 -.0522 -.1530 -.0657",
    11: ".4706 .5178 .5660 .6147 .6674 .4629 .3507 .2278 .1797 .1430",
    12: "-.2534 -.2337 -.2111 -.1672 -.1537 -.2128 -.2716 -.3400 -.3810 -.3505",
    16: "-.2928 -.2523 -.2111 -.1672 -.1537 -.4148 -.4584 -.5093 -.5398 -.5171",
    17: "-.1530 -.1172 -.0806 -.0449 .0117 -.1068 -.3820 -.4232 -.4197 -.4780",
}
"""What a hand earns against the dealer's 2 to 10 and ace, from an infinite deck
(wizardofodds.com/games/blackjack/appendix/5)."""


def test_blackjack_from_an_infinite_deck():
    states = [
        {"hand": hand, "dealer": up, "dealer_soft": int(up == 11)}
        for hand in WIZARD
        for up in range(2, 12)
    ]
    board = table_games.Blackjack(game="blackjack", name="blackjack")
    game = Game(board, table_games.blackjack_rules(board))
    graph = Graph(game)
    at = graph.solve(np.array([game.parse(state) for state in states]))
    published = [float(value) for row in WIZARD.values() for value in row.split()]
    assert graph.values[at, 0] == pytest.approx(published, abs=5.1e-5)
