"""How a round begins: who has what, and the spins that the questions give ([start] of a board).

Four questions come before round 2 of the show. Who buzzes in first answers; that answer and two
others are then offered to the other players, and each chooses one. The right answer brings
`buzz_spins` to who buzzed in, `choice_spins` to each who chose it; a wrong one costs nothing. Where
nobody buzzes in, all players choose. Every player is as likely to buzz in first, unless `buzzes`
says otherwise, and every answer is right or wrong by itself.

The distribution is exact, in fractions: that of one question, convolved. The players stand in turn
order, the lowest score first; of equal scores the one with fewer spins is first, and then the one
on the left, so the questions may change who is who among equals.

Sources: docs/sources.md#fan-pages-of-press-your-luck, docs/sources.md#pyl-ml.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, product
from math import lcm
from typing import Annotated, Any, Self

from pydantic import Field, PlainSerializer, PlainValidator, StrictInt, model_validator

from luckbase.solver.board.model import Section, mistake
from luckbase.solver.games.press_your_luck.slides import MAX_DOLLARS, read_chance
from luckbase.solver.sentences import many, show

MAX_QUESTIONS = 6  # the show had four, its pilot five
MAX_SPINS = 5  # that an answer brings
MAX_EARNED = 20  # that a player begins with; so many a game's questions give in all

Spins = tuple[int, ...]
"""Of each player."""


def _chance(written: object) -> Fraction:
    return read_chance(written, (), zero=True)


Chance = Annotated[Fraction, PlainValidator(_chance), PlainSerializer(str)]
Answer = Annotated[StrictInt, Field(ge=0, le=MAX_SPINS)]


class Start(Section):
    """[start]: scores, whammies; and the spins as they are, or the questions that give them."""

    scores: tuple[Annotated[StrictInt, Field(ge=0, le=MAX_DOLLARS)], ...]
    whammies: tuple[Annotated[StrictInt, Field(ge=0, le=3)], ...] | None = None
    spins: tuple[Annotated[StrictInt, Field(ge=0, le=MAX_EARNED)], ...] | None = None
    questions: Annotated[StrictInt, Field(ge=0, le=MAX_QUESTIONS)] = 4
    buzz_spins: Answer = 3
    choice_spins: Answer = 1
    buzzes: tuple[Chance, ...] | None = None
    buzz_right: Chance = Fraction(3, 5)
    choice_right: Chance = Fraction(4, 5)

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        for name in ("whammies", "spins", "buzzes"):
            self._one_a_player(name)
        for before, after in pairwise(self.scores):
            if after < before:
                said = f"{after} stands behind {before}; write the lowest score first: it plays"
                raise mistake(f"{said} first", "start", "scores")
        if self.spins is not None:
            quiz = [name for name in QUIZ if name in self.model_fields_set]
            if quiz:
                said = f"spins are given as they are; leave {quiz[0]} out, or spins"
                raise mistake(said, "start", quiz[0])
        elif sum(self.buzzes or ()) > 1:
            said = f"the chances sum to {show(sum(self.buzzes or ()))}; expected at most 1"
            raise mistake(f"{said}, the rest is that nobody buzzes in", "start", "buzzes")
        return self

    def _one_a_player(self, name: str) -> None:
        found, players = getattr(self, name), len(self.scores)
        if found is not None and len(found) != players:
            said = f"{many(len(found), 'number')} for {many(players, 'score')}"
            raise mistake(f"{said}; expected one a player", "start", name)

    def check(self, max_whammies: int) -> None:
        """Raise a mistake for who would be out by the rules of the board."""
        for whammies in self.whammies or ():
            if whammies >= max_whammies:
                said = f"{whammies} put a player out; expected fewer than max_whammies"
                raise mistake(f"{said}, {max_whammies}", "start", "whammies")

    def states(self) -> Iterator[tuple[Fraction, dict[str, Spins]]]:
        """(chance, scores in dollars, earned and whammies in turn order), each state once."""
        found: dict[tuple[Spins, ...], Fraction] = {}
        whammies = self.whammies or (0,) * len(self.scores)
        for spins, chance in self.earned().items():
            players = sorted(zip(self.scores, spins, whammies, strict=True), key=lambda p: p[:2])
            state = tuple(zip(*players, strict=True))
            found[state] = found.get(state, Fraction(0)) + chance
        for state, chance in found.items():
            yield chance, dict(zip(("scores", "earned", "whammies"), state, strict=True))

    def earned(self) -> dict[Spins, Fraction]:
        """The chance of the spins that the players earn, in the order of [start]."""
        if self.spins is not None:
            return {self.spins: Fraction(1)}
        players = len(self.scores)
        one = dict[Spins, Fraction]()
        buzzes = self.buzzes or (Fraction(1, players),) * players
        for first, chance in enumerate((*buzzes, 1 - sum(buzzes))):
            for right in product((False, True), repeat=players):
                spins, weight = [], chance
                for player, is_right in enumerate(right):
                    likely = self.buzz_right if player == first else self.choice_right
                    brings = self.buzz_spins if player == first else self.choice_spins
                    weight *= likely if is_right else 1 - likely
                    spins.append(brings * is_right)
                if weight:
                    one[tuple(spins)] = one.get(tuple(spins), Fraction(0)) + weight
        return _convolved(tuple(one.items()), self.questions, players)


QUIZ = ("questions", "buzz_spins", "choice_spins", "buzzes", "buzz_right", "choice_right")
"""The keys that say what the questions give."""


@lru_cache(maxsize=8)
def _convolved(
    one: Sequence[tuple[Spins, Fraction]], times: int, players: int
) -> dict[Spins, Fraction]:
    """The sum of so many independent draws of `one`; in whole numbers, which are quick."""
    scale = lcm(*(chance.denominator for _, chance in one))
    weights = [(spins, int(chance * scale)) for spins, chance in one]
    found: dict[Any, int] = {(0,) * players: 1}
    for _ in range(times):
        before, found = found, {}
        for had, weight in before.items():
            for spins, more in weights:
                now = tuple(map(int.__add__, had, spins))
                found[now] = found.get(now, 0) + weight * more
    return {spins: Fraction(weight, scale**times) for spins, weight in found.items()}
