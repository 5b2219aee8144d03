"""Press Your Luck, round 2.

A state is four tuples, one entry for each of two or three players in turn order: scores (in
units), earned spins, passed spins, whammies. A player with ``max_whammies`` whammies is out: score
0, no spins. The value of a state is the chances to win, each player choosing what is best for
himself:

    value(s) = the final payoff                                 if the game is over in s,
    value(s) = the best, for the player up, over the actions a  otherwise,
    value(s, a) = sum over outcomes s' of a:  chance(s') * value(s').

Readings where the rules leave room
-----------------------------------
* The player up is the lowest in turn order who is in and has a spin, earned or passed.
* Up with passed spins he must spin one of them, also at the cap: the one action is "play". Money
  uses the spin; money plus a spin uses it and adds an *earned* one; a whammy uses it, sets his
  score to 0, counts one whammy and turns his remaining passed spins into earned ones. At
  ``max_whammies`` he is out and all his spins are gone.
* Otherwise he decides: play one earned spin, or pass all of them to the highest-scoring opponent
  still in, where they join that opponent's passed spins. If several opponents are in and tied:
  ``tied_pass = "next"`` names the next of them after the passer in cyclic turn order (of three,
  after player 2 comes 3, after player 3 comes 1); ``"passer"`` makes each pass an action.
* ``third_place_spins``: with three players in, a player strictly behind all others must
  play. With two players in the rule never applies.
* At the cap (score = cap) a player who may decide always passes, and by the "next" rule whatever
  ``tied_pass`` says. Scores saturate at the cap.
* Order of actions: play, then the passes, to the next in cyclic turn order first. A
  later action is chosen only if it is better for the player up, by more than ``tie_tolerance``,
  than the best before it.
* Over when nobody has a spin, or one player is in. The highest score among the players in wins
  and ties share equally, so a player left alone wins.

Merging
-------
A whammy always uses up a spin, so with T spins left in all, a player who is in with w whammies
and w + T < max_whammies can no longer be put out; his w is then taken as 0. ``merge=False`` turns
this off, and nothing but the number of states changes.

Loops
-----
Players at the cap can pass a plus-a-spin round and come back to the same state. The states are
therefore settled one strongly connected component at a time, children first. A component without
a way back is the recursion above. Another one is iterated until nothing moves any more, from 0 and
from 1 for everybody, which must come to the same, else `Unsettled`.

But for these, all arithmetic is that of the chances given: floats, or exact if they are Fractions
(then set ``tie_tolerance=0``).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

Number = float | Fraction
STILL, SWEEPS = 1e-15, 2000


class Unsettled(Exception):
    """The players' best replies do not come to rest, or not at one place."""


# February 1985 at $250, choices at random: (units, chance), exactly.
FEBRUARY_1985 = {
    "whammy": Fraction(1, 6),
    "money": tuple((units, Fraction(chance)) for units, chance in [
        (2, "2/27"), (3, "1/18"), (5, "1/54"), (6, "65/972"), (7, "5/243"), (8, "59/972"),
        (9, "5/243"), (10, "109/486"),
    ]),
    "spin": tuple((units, Fraction(chance)) for units, chance in [
        (2, "7/324"), (3, "31/324"), (4, "31/486"), (6, "1/54"), (12, "5/162"), (16, "5/162"),
        (20, "5/162"),
    ]),
}  # fmt: skip


@dataclass(frozen=True)
class Rules:
    """One board's spin and the options of the game. Scores and winnings are whole units."""

    whammy: Number  # chance of a whammy
    money: tuple[tuple[int, Number], ...]  # (units, chance): money, spin used
    spin: tuple[tuple[int, Number], ...]  # (units, chance): money plus a spin, units >= 1
    cap: int  # score cap in units
    max_whammies: int = 4
    third_place_spins: bool = True
    tied_pass: str = "passer"  # or "next"
    tie_tolerance: float = 1e-12


class State(NamedTuple):
    """What the players have, in turn order."""

    scores: tuple[int, ...]
    earned: tuple[int, ...]
    passed: tuple[int, ...]
    whammies: tuple[int, ...]


class Reference:
    """The game under ``rules``: values and actions of any state, each state solved once."""

    def __init__(self, rules, merge=True):
        chances = [rules.whammy] + [chance for _, chance in rules.money + rules.spin]
        self.rules = rules
        self.merge = merge
        self.one = 1.0 if any(isinstance(c, float) for c in chances) else Fraction(1)
        self.settled = {}

    def value(self, scores, earned, passed, whammies):
        """The chances to win, in turn order."""
        state = self.merged(State(*map(tuple, (scores, earned, passed, whammies))))
        self._settle(state)
        return self.settled[state]

    def actions(self, scores, earned, passed, whammies):
        """(name, payoff triple) of each action of the player up, in the rule's order.

        Names: "play", "pass to 1", "pass to 2", "pass to 3". A forced spin is the single action
        "play"; a game that is over has none.
        """
        state = self.merged(State(*map(tuple, (scores, earned, passed, whammies))))
        self._settle(state)
        return [(name, self._expected(outcomes)) for name, outcomes in self.moves(state)]

    # ---- the rules -------------------------------------------------------------------------

    def players_in(self, state):
        return [i for i, w in enumerate(state.whammies) if w < self.rules.max_whammies]

    def player_up(self, state):
        """The lowest in turn order who has a spin (a player who is out has none)."""
        return next(i for i in range(len(state.scores)) if state.earned[i] + state.passed[i] > 0)

    def is_over(self, state):
        no_spins = sum(state.earned) + sum(state.passed) == 0
        return no_spins or len(self.players_in(state)) == 1

    def final_payoff(self, state):
        """The highest score among the players in wins; ties share equally."""
        players_in = self.players_in(state)
        highest = max(state.scores[i] for i in players_in)
        winners = [i for i in players_in if state.scores[i] == highest]
        players = range(len(state.scores))
        return tuple(self.one / len(winners) if i in winners else 0 * self.one for i in players)

    def moves(self, state):
        """The actions of the player up, in the rule's order, with their outcomes."""
        if self.is_over(state):
            return []
        rules = self.rules
        up = self.player_up(state)
        play = ("play", self.spin_outcomes(state))
        if state.passed[up] > 0:
            return [play]

        players_in = self.players_in(state)
        players = len(state.scores)
        after = [(up + step) % players for step in range(1, players)]
        opponents = [i for i in after if i in players_in]
        behind_all = all(state.scores[up] < state.scores[i] for i in opponents)
        if rules.third_place_spins and len(players_in) >= 3 and behind_all:
            return [play]

        at_cap = state.scores[up] == rules.cap
        highest = max(state.scores[i] for i in opponents)
        receivers = [i for i in opponents if state.scores[i] == highest]
        if rules.tied_pass == "next" or at_cap:
            receivers = receivers[:1]
        passes = [(f"pass to {i + 1}", [(self.one, self.after_pass(state, i))]) for i in receivers]
        return passes if at_cap else [play] + passes

    def after_pass(self, state, receiver):
        """All earned spins of the player up become passed spins of ``receiver``."""
        up = self.player_up(state)
        received = state.passed[receiver] + state.earned[up]
        earned, passed = put(state.earned, up, 0), put(state.passed, receiver, received)
        return self.merged(state._replace(earned=earned, passed=passed))

    def spin_outcomes(self, state):
        """The player up spins: a passed spin if he has one, else an earned one."""
        rules = self.rules
        up = self.player_up(state)
        if state.passed[up] > 0:
            earned, passed = state.earned[up], state.passed[up] - 1
        else:
            earned, passed = state.earned[up] - 1, 0

        outcomes = [(rules.whammy, self.after_whammy(state, up, earned + passed))]
        for taps, gained in ((rules.money, 0), (rules.spin, 1)):
            all_earned = put(state.earned, up, earned + gained)
            all_passed = put(state.passed, up, passed)
            for units, chance in taps:
                score = min(state.scores[up] + units, rules.cap)
                scores = put(state.scores, up, score)
                after = State(scores, all_earned, all_passed, state.whammies)
                outcomes.append((chance, self.merged(after)))
        return outcomes

    def after_whammy(self, state, up, spins_left):
        """Score 0, one whammy more, passed spins become earned; the last whammy takes all spins."""
        whammies = state.whammies[up] + 1
        if whammies == self.rules.max_whammies:
            spins_left = 0
        return self.merged(
            State(
                put(state.scores, up, 0), put(state.earned, up, spins_left),
                put(state.passed, up, 0), put(state.whammies, up, whammies),
            )
        )  # fmt: skip

    def merged(self, state):
        """The state with 0 whammies for each player in who can no longer be put out."""
        if not self.merge:
            return state
        total = sum(state.earned) + sum(state.passed)
        limit = self.rules.max_whammies
        # A player out has w = limit, so w + total < limit holds for players in only.
        whammies = tuple(0 if w + total < limit else w for w in state.whammies)
        return State(state.scores, state.earned, state.passed, whammies)

    # ---- the recursion ---------------------------------------------------------------------

    def _expected(self, outcomes):
        return self._mean(outcomes, {})

    def _mean(self, outcomes, values):
        result = [(chance, self._value(after, values)) for chance, after in outcomes]
        players = range(len(result[0][1]))
        return tuple(sum(chance * payoffs[i] for chance, payoffs in result) for i in players)

    def _value(self, after, values):
        return values[after] if after in values else self.settled[after]

    def _best(self, state, own, values):
        """The payoffs of the best action, own, a later one only if better by more than a tie."""
        if not own:
            return self.final_payoff(state)
        return self._first_best(
            [self._mean(outcomes, values) for _, outcomes in own], self.player_up(state)
        )

    def _first_best(self, triples, up):
        best = triples[0]
        for triple in triples[1:]:
            if triple[up] > best[up] + self.rules.tie_tolerance:
                best = triple
        return best

    def states_of(self, after):
        """The states that an outcome may come to."""
        return [after]

    def successors(self, moves):
        return [s for _, outs in moves for _, after in outs for s in self.states_of(after)]

    def _settle(self, root):
        """Find the values of ``root`` and of all states below it, one component after another."""
        below, todo = {}, [root]
        while todo:
            state = todo.pop()
            if state not in below and state not in self.settled:
                below[state] = self.moves(state)
                todo += self.successors(below[state])
        children = {s: [c for c in self.successors(own) if c in below] for s, own in below.items()}
        for component in components(children):
            self._settle_component({state: below[state] for state in component})

    def _settle_component(self, moves):
        """Value states that reach one another, given that all others they reach are settled."""
        if not any(state in moves for own in moves.values() for state in self.successors(own)):
            [(state, own)] = moves.items()
            self.settled[state] = self._best(state, own, {})
            return
        found = []
        for guess in (0.0, 1.0):
            values = {state: (guess,) * len(state.scores) for state in moves}
            for _ in range(SWEEPS):
                before = dict(values)
                for state, own in moves.items():
                    values[state] = self._best(state, own, values)
                if apart(values, before) < STILL:
                    break
            else:
                raise Unsettled
            found.append(values)
        if apart(*found) >= 1e-12:
            raise Unsettled
        self.settled.update(found[0])


def apart(one, other):
    """The largest difference of the payoffs of states."""
    return max(abs(x - y) for state in one for x, y in zip(one[state], other[state], strict=True))


def put(entries, i, entry):
    """``entries`` with ``entry`` at place ``i``."""
    return entries[:i] + (entry,) + entries[i + 1 :]


def components(children):
    """The strongly connected components, children first (Tarjan's algorithm, without recursion)."""
    number, lowest, stack, there, result = {}, {}, [], set(), []
    for root in children:
        path = [] if root in number else [(root, iter(children[root]))]
        while path:
            state, rest = path[-1]
            if state not in number:
                number[state] = lowest[state] = len(number)
                stack.append(state)
                there.add(state)
            for child in rest:
                if child not in number:
                    path.append((child, iter(children[child])))
                    break
                if child in there:
                    lowest[state] = min(lowest[state], number[child])
            else:
                path.pop()
                if path:
                    parent = path[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[state])
                if lowest[state] == number[state]:
                    component = []
                    while not component or component[-1] != state:
                        component.append(stack.pop())
                        there.discard(component[-1])
                    result.append(component)
    return result
