"""Goofspiel bound to a board: its rules.

The fields are ``mine=1,2,5 theirs=2,3,4 deck=1,4,5 upcard=4 lead=0``: no `upcard` before it is
turned; the upcard stands in `deck`; `lead`, my points minus theirs, only where the objective is
winning.

Hands are canonical on their lowest ranks, so a state does not say which cards were asked for; an
answer in the cards of the person comes from `agents`. On a board with `keep_cards` they keep
their cards, for agents who look at them, and there is no table.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import comb

import numpy as np

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import (
    Agents,
    Charts,
    Drawing,
    Layout,
    Level,
    SearchHints,
    View,
)
from luckbase.solver.game.fields import Field, Refuse, members, set_field
from luckbase.solver.game.game import Game, load_game
from luckbase.solver.game.groups import GROUP_TYPE, Axis, Grouped, Groups
from luckbase.solver.game.rules import JOINT, Numbers, Rules, Unavailable
from luckbase.solver.games.goofspiel import rules
from luckbase.solver.games.goofspiel.board import GoofspielBoard
from luckbase.solver.games.goofspiel.board import Rules as Options
from luckbase.solver.njit import njit
from luckbase.solver.sentences import many

HERE = __package__
HANDS = ("mine", "theirs", "deck")
NO_CARDS = Unavailable(
    "keep_cards: a table holds who beats whom and not the cards, which change no value; write false"
)


def goofspiel(board: GoofspielBoard) -> Rules:
    """The rules of Goofspiel on a board."""
    options = board.rules
    cards, points, win = options.cards, options.points, options.objective == "win"
    fields = [set_field(name, cards) for name in HANDS]
    fields.append(Field("upcard", low=1, high=cards, default=0, blank=0, bits=5))
    if win:
        fields.append(Field("lead", low=-points, high=points, bits=9))
    ints = np.array([cards, win, points, options.keep_cards], np.int64)
    every = tuple(range(1, cards + 1))
    return Rules(
        fields=fields,
        players=2,
        transition=rules.transition,
        numbers=Numbers(ints, np.zeros(1)),
        max_edges=cards**2,
        actions=action_name,
        start=dict.fromkeys(HANDS, every),
        canonical=partial(canonical, options, ints),
        tie_tolerance=1e-9,
        payoff_range=(0.0, 1.0) if win else (-float(points), float(points)),
        payoff_name="chance to finish ahead" if win else "expected points ahead",
        pays=not win,  # for winning the lead says all
        simultaneous=True,
        capabilities={
            Layout: NO_CARDS if options.keep_cards else f"{HERE}.layout:Layers",
            Agents: f"{HERE}.agents:OWN",
            Charts: f"{HERE}.charts:MoveCharts",
            View: view,
            SearchHints: SearchHints(level(options), partial(states_below, options)),
            Drawing: f"{HERE}.charts:drawing",
            Groups: groups,
        },
    )


def options_of(game: Game) -> Options:
    """The board's rule options."""
    assert isinstance(game.board, GoofspielBoard)
    return game.board.rules


def view(game: Game) -> View:
    """With the cards of the hands in its states, and with who beats whom alone; each player's own
    hand is `mine`."""
    return View(
        lambda: keeping(game, False), lambda: keeping(game, True), partial(simplify, game),
        partial(rules.as_seen_by, options_of(game)), choice_names,
    )  # fmt: skip


def keeping(game: Game, cards: bool) -> Game:
    """The game on the same board, with or without `keep_cards`."""
    options = options_of(game)
    if options.keep_cards == cards:
        return game
    kept = options.model_copy(update={"keep_cards": cards})
    return load_game(game.board.model_copy(update={"rules": kept}))


def simplify(game: Game, states: Ints) -> Ints:
    """States (n, fields) on their lowest ranks, from states that keep the cards."""
    simple = np.array(states, np.int64, order="C")
    rules.make_all_canonical(game.numbers.ints, simple)
    return simple


def choice_names(words: Mapping[str, object], player: int, count: int) -> list[str]:
    """``bid 3``, in the cards of the hand that was asked about."""
    name = HANDS[player]
    return [f"bid {card}" for card in members(set_field(name, 16).read(words[name])[0])]


def level(options: Options) -> Level:
    """The cards in a hand; an upcard that is turned comes before the bids for it."""
    return Level(falls={"mine": options.cards + 1, "upcard": -1}, strict=True)


def states_below(options: Options, state: Ints) -> float:
    """About how many states a search from a state (fields,) meets, mostly some times too many.

    With s cards left: the decks times the pairs of hands, which merge into patterns, times the
    leads (winning), each without an upcard and with each of s. Below hands that differ a third of
    that: of 28 such states of 7 and 8 cards, 0.4 to 2.5 times what was counted, but for one of 40
    states.
    """
    cards, left, total = options.cards, rules.size_of(int(state[rules.MINE])), 0.0
    for size in range(left + 1):
        decks = comb(left, size)
        hands = min(decks**2, 2 * rules.pattern_count(cards, size))
        leads = 1.0
        if options.objective == "win":  # three ways a round but for the first, which the hands
            # tell, and no more than the mean deck or what is gone can be worth
            reach = min(size, left - size) * (cards + 1) / 2
            leads = min(3.0 ** max(0, left - size - 1), 2 * reach + 1)
        total += decks * hands * leads * (1 + size)
    return total if state[rules.MINE] == state[rules.THEIRS] else total / 3


def action_name(action: int) -> str:
    """``3 against 5`` for a joint action, in the ranks of the canonical hands."""
    return f"{action // JOINT + 1} against {action % JOINT + 1}"


def canonical(options: Options, ints: Ints, states: Ints, refuse: Refuse) -> Ints:
    """Canonical states: hands on their lowest ranks; a game that is decided is the empty one."""
    sizes = rules.sizes_of(states[:, : rules.UPCARD])
    for i, name in ((rules.THEIRS, "theirs"), (rules.DECK, "deck")):
        refuse(
            sizes[:, i] != sizes[:, 0],
            lambda x, i=i, name=name: (
                f"{name}: {many(int(sizes[x, i]), 'card')}, and mine has {sizes[x, 0]}; "
                "both hands and the deck have as many"
            ),
        )
    deck, upcard = states[:, rules.DECK], states[:, rules.UPCARD]
    absent = (upcard > 0) & (deck >> np.maximum(upcard - 1, 0) & 1 == 0)
    refuse(absent, lambda x: f"upcard: {upcard[x]} is not in the deck; it still stands in deck")
    if options.objective == "win":
        gone = options.points - np.array([rules.points_of(each) for each in deck], np.int64)
        lead = states[:, rules.LEAD] - options.points
        over = sizes[:, 0] == 0
        refuse(
            (np.abs(lead) > gone) & ~over,
            lambda x: f"lead: {lead[x]} is more than the {gone[x]} points that are gone",
        )
    rules.make_all_canonical(ints, states)
    return states


@njit(GROUP_TYPE, cache=True, nogil=True)
def group(board, state, actor, out, rest):  # type: ignore[no-untyped-def]
    """The group of a state, by the contract in `solver.game.groups`."""
    cards = rules.size_of(state[rules.MINE])
    out[2], out[3] = cards, rules.points_of(state[rules.DECK])
    return cards * board.ints[0] + state[rules.UPCARD]


def groups(game: Game) -> Groups:
    """What people group its decisions by: cards left, and the upcard."""
    options = options_of(game)
    cards = options.cards + 1
    return Groups(
        columns=(
            Grouped("cards left", [str(k) for k in range(cards)]),
            Grouped("upcard", ["none", *(str(k) for k in range(1, cards))]),
        ),
        group=group,
        numbers=Numbers(np.array([cards], np.int64), np.zeros(1)),
        axes=(
            Axis("cards_left", "cards left", 0, 1, cards),
            Axis("deck", "points of the deck", 0, 1, options.points + 1),
        ),
    )
