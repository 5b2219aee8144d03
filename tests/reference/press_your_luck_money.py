"""Press Your Luck for money, and played on against the house: the spins are those of
`press_your_luck_slides`, and here is what the players want and what the last one in may do.

* ``objective = "money"``: who has the highest score of those in keeps it, several keep it each; the
  others have nothing. ``"win+money"``: beside that, `win_value` for a win, several share it.
* ``house``: the last one in goes on alone. What was passed to them they spin. When only earned
  spins are left they spin or stop; at the cap they stop. With the last whammy everybody is out, and
  nobody has anything.
* Ties between actions: spinning before stopping.

`plays` is the whole tree of a game below a state by brute force, every path by itself: who plays
how is a function of the state.
"""

from collections import defaultdict

from tests.reference.press_your_luck_slides import Slides


class Money(Slides):
    """The game for dollars: of a unit each, beside `win_value` for a win."""

    def __init__(self, *squares, win_value=0.0, house=False, unit=1, **how):
        super().__init__(*squares, **how)
        self.win_value, self.house, self.unit = win_value, house, unit

    def is_over(self, state):
        if not self.house:
            return super().is_over(state)
        return sum(state.earned) + sum(state.passed) == 0

    def final_payoff(self, state):
        inside = self.players_in(state)
        winners = [i for i in inside if state.scores[i] == max(state.scores[j] for j in inside)]
        return tuple(
            self.win_value / len(winners) + self.unit * state.scores[i] if i in winners else 0.0
            for i in range(len(state.scores))
        )

    def moves(self, state):
        inside = self.players_in(state)
        if len(inside) != 1 or self.is_over(state):
            return super().moves(state)
        (last,) = inside
        spins = ("play", self.spin_outcomes(state))
        if state.passed[last]:
            return [spins]
        stop = ("stop", [(1.0, state._replace(earned=(0,) * len(state.scores)))])
        return [stop] if state.scores[last] == self.rules.cap else [spins, stop]


def plays(game, state, decide, longest):
    """The chance of every (state at the end, spins that it took), path by path, of plays of no more
    than so many spins; of boards on which no slide leaves a choice."""
    result = defaultdict(float)
    paths = [(1.0, state, 0)]
    while paths:
        chance, here, spins = paths.pop()
        moves = dict(game.moves(here))
        if not moves:
            result[here, spins] += chance
        elif spins <= longest:
            name = decide(here, list(moves))
            for weight, after in moves[name]:
                paths.append((chance * weight, after, spins + (name == "play")))
    return result
