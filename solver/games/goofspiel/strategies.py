"""How to bid: the optimal distributions of both sides, from the values of the layer below.

A question names cards, the table knows patterns. `Question.children` are the states that the pairs
of bids lead to, to be looked up by whoever holds a table (or a search); `bids` takes their payoffs,
solves the one matrix game and answers in the cards that were named::

    question = strategies.question(game, {"mine": "1,2,5", …, "upcard": "4"})
    answer = strategies.bids(question, table.probe(question.children))

The value of a game is unique, the strategy may not be. Of cards that win and lose against the same
bids the lowest one has the weight; of other optimal strategies any may come out, and `least`,
`most` say how much weight each card can have in one (`matrix_game.ranges`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.fields import members
from luckbase.solver.game.game import Game
from luckbase.solver.games.goofspiel import rules
from luckbase.solver.games.goofspiel.board import GoofspielBoard
from luckbase.solver.matrix_game import certified as matrix_game

UNIQUE = 1e-4
"""A card whose weight can change by more leaves room for another optimal strategy."""


@dataclass(frozen=True)
class Question:
    """A state with its upcard turned, in the cards that a person named.

    children: int64 (cards of mine * cards of theirs, fields), canonical states, mine slowest.
    rewards: float64 (mine, theirs), what each pair of bids pays player one at once.
    """

    mine: tuple[int, ...]
    theirs: tuple[int, ...]
    deck: tuple[int, ...]
    upcard: int
    children: Ints
    rewards: Floats


@dataclass(frozen=True)
class Side:
    """One side's optimal bids: arrays (cards,) in the order of `cards`.

    chances: an optimal lottery. least, most: how small and how large the chance of each card can be
    in an optimal one. unique: whether there is no other.
    """

    cards: tuple[int, ...]
    chances: Floats
    least: Floats
    most: Floats

    @property
    def unique(self) -> bool:
        """Whether no other lottery is optimal."""
        return bool(np.max(self.most - self.least) < UNIQUE)


@dataclass(frozen=True)
class Bids:
    """The answer: the value to player one, the gap that the two lotteries leave, both sides."""

    value: float
    gap: float
    mine: Side
    theirs: Side


def question(game: Game, words: Mapping[str, object]) -> Question:
    """The question in a person's words; StateError as `Game.parse`, or without an upcard."""
    game.parse(words)  # or its sentence
    said = game.fields.read(words).tolist()  # the person's own cards
    mine, theirs, deck = (tuple(members(said[at])) for at in range(rules.UPCARD))
    upcard = said[rules.UPCARD]
    if not upcard:
        raise StateError("upcard is missing; write the card that was turned up as upcard=4")
    wins = np.sign(np.subtract.outer(np.array(mine), np.array(theirs)))
    assert isinstance(game.board, GoofspielBoard)
    win = game.board.rules.objective == "win"
    values = np.zeros((len(mine), len(theirs), game.field_count), np.int64)
    for i, x in enumerate(mine):
        values[i, :, rules.MINE] = _mask(mine) ^ 1 << (x - 1)
    for j, y in enumerate(theirs):
        values[:, j, rules.THEIRS] = _mask(theirs) ^ 1 << (y - 1)
    values[..., rules.DECK] = _mask(deck) ^ 1 << (upcard - 1)
    if win:
        values[..., rules.LEAD] = said[rules.LEAD] + upcard * wins
    children = game.canonical_states(values.reshape(-1, game.field_count))
    rewards = np.zeros(wins.shape) if win else (upcard * wins).astype(np.float64)
    return Question(mine, theirs, deck, upcard, children, rewards)


def bids(question: Question, payoffs: Floats) -> Bids:
    """The optimal bids, from the payoffs (children, players) of the question's children."""
    games = payoffs[:, 0].reshape(question.rewards.shape) + question.rewards
    solved = matrix_game.solve(games[None])
    sides = []
    for cards, chances, own in (
        (question.mine, solved.row_strategies[0], games),
        (question.theirs, solved.column_strategies[0], -games.T),
    ):
        least, most = matrix_game.ranges(own).T
        sides.append(Side(cards, chances, least, most))
    return Bids(float(solved.values[0]), float(solved.gaps[0]), *sides)


def first_bids(game: Game, words: Mapping[str, object] | None = None) -> list[Question]:
    """The questions of the first move, or of the position in words, a card of the deck each.

    Raises StateError for no position, for one with an upcard and for one without any card.
    """
    if words:
        said = game.fields.read(words).tolist()
        if said[rules.UPCARD]:
            raise StateError("upcard: a chart is of every card of the deck; leave it out")
        game.parse(words)  # or its sentence
        deck = members(said[rules.DECK])
        if not deck:
            raise StateError("deck: no card is left to turn up")
        return [question(game, dict(words) | {"upcard": card}) for card in deck]
    assert isinstance(game.board, GoofspielBoard)
    every = tuple(range(1, game.board.rules.cards + 1))
    whole = dict.fromkeys(("mine", "theirs", "deck"), every)
    return [question(game, whole | {"upcard": k}) for k in every]


def _mask(cards: tuple[int, ...]) -> int:
    return sum(1 << (card - 1) for card in cards)
