"""Press Your Luck with every slide and the player's own choices: the rules of turns, passes and
whammies are those of `press_your_luck`, and the spin is read aloud from the squares.

A spin: every square shows one of its slides, each equally likely, and one square is lit, each
equally likely. What the lit square shows happens to the player up:

* ``("money", units, spins)``: units are added; the spin is used, and so many spins are earned.
* ``("double", spins)``: the score again.
* ``("whammy",)``: as in `press_your_luck`.
* ``("lose a whammy",)``: the spin is used, and a whammy goes if there is one.
* ``("or lose", units)``: units, or one whammy goes, whichever is better for the player up, the
  money on a tie; without a whammy it is the money. With ``or_lose = "cash"`` always the money.
* ``("to", [squares])``: with ``choices = "best"`` the player up takes the square whose slide, which
  they see, is best for them, on a tie (1e-12) the first clockwise from where they stand; with
  ``"random"`` each is equally likely, and it shows a slide of its own, each equally likely.

Scores stop at the cap, whammies at 0, and the spins of all players together at ``spin_cap`` where a
slide brings some: what is over is lost. Squares are numbered from 0, clockwise.

Whammies are never merged here.
"""

from collections import defaultdict
from dataclasses import dataclass
from itertools import product

from tests.reference.press_your_luck import Reference, Rules, put


@dataclass(frozen=True)
class Choice:
    """The player up takes one of these, the first of those that are best for them."""

    up: int
    options: tuple[object, ...]  # states and choices


class Slides(Reference):
    """The game on squares: values and actions of any state."""

    def __init__(self, squares, cap, choices="best", or_lose="best", spin_cap=None, **rules):
        super().__init__(Rules(1.0, (), (), cap, **rules), merge=False)
        self.squares, self.choices = squares, choices
        self.or_lose, self.spin_cap = or_lose, spin_cap
        chances = defaultdict(float)
        every = 1.0 / len(squares)
        if choices == "random":
            for square in range(len(squares)):
                for chance, slide in self._at_random(square):
                    chances[slide] += every * chance
        else:
            for square in range(len(squares)):
                looked_at = sorted(self._reached(square))
                for slides in product(*(squares[number] for number in looked_at)):
                    weight = every
                    for number in looked_at:
                        weight /= len(squares[number])
                    chances[self._seen(dict(zip(looked_at, slides, strict=True)), square)] += weight
        self.spins = list(chances.items())

    def _at_random(self, square):
        """(chance, slide) of what a lit square comes to."""
        slides = self.squares[square]
        for slide in slides:
            if slide[0] != "to":
                yield 1.0 / len(slides), slide
                continue
            for target in slide[1]:
                for chance, result in self._at_random(target):
                    yield chance / len(slides) / len(slide[1]), result

    def _reached(self, square):
        """The squares that a spin may look at when this one is lit."""
        result = {square}
        for slide in self.squares[square]:
            for target in slide[1] if slide[0] == "to" else ():
                result |= self._reached(target)
        return result

    def _seen(self, shown, square):
        """What a lit square comes to on a board that has stopped: a slide, or a choice."""
        slide = shown[square]
        if slide[0] != "to":
            return slide
        clockwise = sorted(slide[1], key=lambda target: (target - square) % len(self.squares))
        return ("choose", tuple(self._seen(shown, target) for target in clockwise))

    # ---- the rules -------------------------------------------------------------------------

    def spin_outcomes(self, state):
        up = self.player_up(state)
        return [(chance, self._after(state, up, slide)) for slide, chance in self.spins]

    def _after(self, state, up, slide):
        kind = slide[0]
        if kind == "choose":
            return Choice(up, tuple(self._after(state, up, option) for option in slide[1]))
        earned, passed = state.earned[up], state.passed[up]
        earned, passed = (earned, passed - 1) if passed > 0 else (earned - 1, 0)
        now = state._replace(
            earned=put(state.earned, up, earned), passed=put(state.passed, up, passed)
        )
        if kind == "whammy":
            return self.after_whammy(now, up, earned + passed)
        score = state.scores[up]
        if kind == "money":
            return self._paid(now, up, score + slide[1], slide[2])
        if kind == "double":
            return self._paid(now, up, 2 * score, slide[1])
        had = state.whammies[up]
        fewer = now._replace(whammies=put(state.whammies, up, max(had - 1, 0)))
        if kind == "lose a whammy":
            return fewer
        assert kind == "or lose"
        money = self._paid(now, up, score + slide[1], 0)
        return money if self.or_lose == "cash" or had == 0 else Choice(up, (money, fewer))

    def _paid(self, state, up, score, brings):
        if brings and self.spin_cap is not None:
            there = sum(state.earned) + sum(state.passed)
            brings = max(0, min(brings, self.spin_cap - there))
        return state._replace(
            scores=put(state.scores, up, min(score, self.rules.cap)),
            earned=put(state.earned, up, state.earned[up] + brings),
        )

    # ---- the recursion ---------------------------------------------------------------------

    def states_of(self, after):
        if isinstance(after, Choice):
            return [state for option in after.options for state in self.states_of(option)]
        return [after]

    def _value(self, after, values):
        if isinstance(after, Choice):
            triples = [self._value(option, values) for option in after.options]
            return self._first_best(triples, after.up)
        return super()._value(after, values)
