"""Skunk, and Pig as a race, in exact fractions.

A state is (mine, yours, turn) of the player to act; a policy says of each whether he rolls. For a
given policy the chances to win satisfy one linear equation a state, and those at the start of a
turn determine all others. They are solved exactly, by Gaussian elimination on fractions; then the
policy is improved at every state where the other action is better, and so on until nothing is
better (Howard's policy iteration). With both players using one policy this is a game and not a
decision problem; that no state can be improved is the Bellman equation, and its solution is the
value (every play ends), however it was found.

The first policy holds at 20; comparisons are exact, so a policy that is returned is optimal.
"""

from fractions import Fraction
from itertools import product


class Reference:
    """Skunk to `goal` with these dice; `pig` dice lose the turn where Skunk's lose the score."""

    def __init__(self, goal, dice=2, sides=6, all_ones="score"):
        self.goal, self.all_ones = goal, all_ones
        self.rolls = list(product(range(1, sides + 1), repeat=dice))
        self.rolling = {state: state[2] < 20 for state in self.states()}
        while True:
            self.value = self._evaluated()
            gains = {s: self.roll(s) - self.hold(s) for s in self.states() if s[2] > 0}
            better = {state: gain > 0 for state, gain in gains.items() if gain}
            if all(self.rolling[state] == rolls for state, rolls in better.items()):
                break
            self.rolling.update(better)

    def states(self):
        for mine, yours in product(range(self.goal), repeat=2):
            for turn in range(self.goal - mine):
                yield mine, yours, turn

    def hold(self, state):
        mine, yours, turn = state
        return 1 - self.value[yours, mine + turn, 0]

    def roll(self, state):
        mine, yours, turn = state
        total = Fraction(0)
        for faces in self.rolls:
            lost = self._lost(faces, mine, yours)
            if lost is not None:
                total += 1 - self.value[(*lost, 0)]
            elif mine + turn + sum(faces) >= self.goal:
                total += 1
            else:
                total += self.value[mine, yours, turn + sum(faces)]
        return total / len(self.rolls)

    def _lost(self, faces, mine, yours):
        """Whose turn starts where, if this roll ends the turn."""
        if set(faces) == {1} and self.all_ones == "score":
            return yours, 0
        return (yours, mine) if 1 in faces else None

    def _evaluated(self):
        """The value of every state under the policy."""
        starts = list(product(range(self.goal), repeat=2))
        lines = {start: self._turn(*start) for start in starts}
        solved = _solve({start: line[0] for start, line in lines.items()})
        return {
            (*start, turn): sum(
                (factor * (1 if at is None else solved[at]) for at, factor in form.items()),
                Fraction(0),
            )
            for start, line in lines.items()
            for turn, form in line.items()
        }

    def _turn(self, mine, yours):
        """Every turn of (mine, yours) as a combination of the turn starts."""
        forms = {}
        for turn in range(self.goal - mine - 1, -1, -1):
            form = {None: Fraction(0)}
            if turn and not self.rolling[mine, yours, turn]:
                form = {None: Fraction(1), (yours, mine + turn): Fraction(-1)}
            else:
                for faces in self.rolls:
                    lost = self._lost(faces, mine, yours)
                    if lost is not None:
                        _add(form, {None: Fraction(1), lost: Fraction(-1)})
                    elif mine + turn + sum(faces) >= self.goal:
                        _add(form, {None: Fraction(1)})
                    else:
                        _add(form, forms[turn + sum(faces)])
                form = {at: factor / len(self.rolls) for at, factor in form.items()}
            forms[turn] = form
        return forms


def _add(form, other, times=Fraction(1)):
    for at, factor in other.items():
        form[at] = form.get(at, Fraction(0)) + times * factor


def _solve(lines):
    """x = its line, for every x: elimination, the highest sums of scores first."""
    order = sorted(lines, key=lambda start: (-sum(start), start))
    done = {}
    for x in order:
        form = dict(lines[x])
        for y in [at for at in form if at in done]:
            _add(form, done[y], form.pop(y))  # done ones hold later unknowns only
        own = form.pop(x, Fraction(0))
        done[x] = {at: factor / (1 - own) for at, factor in form.items() if factor or at is None}
        for form in done.values():
            if x in form and form is not done[x]:
                _add(form, done[x], form.pop(x))
    return {x: form[None] for x, form in done.items()}
