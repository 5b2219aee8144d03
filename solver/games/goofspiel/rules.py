"""The rules of Goofspiel: the boards, the transition, the fields, the rules on a board.

A state is my hand, their hand, the deck including the upcard, the upcard (0 before it is turned)
and, if the objective is winning, the lead. Bids are only compared, so canonical hands use the
lowest ranks with the same comparisons (a pattern): a hand is a bit mask, with bit i for the i-th
rank from below. A board with `keep_cards` leaves them unchanged, with bit i for card i + 1. The
deck is a bit mask, with bit k - 1 for card k. The lead is my points minus theirs, stored plus the
points of a full deck, so that no number is negative. A canonical state does not contain the cards
that a person named; `view` answers in their cards.

Row and column of a joint action are the ranks of the two cards, from 0. The higher card takes the
upcard's points, as a reward (points) or into the lead (winning). For winning, a lead of more than
the deck's points decides the game: such a state becomes the empty state with a lead of 1 or -1. At
the end the payoff is 1, 1/2 or 0.

Source: docs/numbers.md#rhoads-and-bartholdi-2012, sections 2 and 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from itertools import product
from typing import Literal

import numpy as np

from luckbase.solver.board.model import Board, Section, option
from luckbase.solver.compiled import njit, types
from luckbase.solver.game import rules
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Agents, Charts, Drawing, FullTable
from luckbase.solver.game.fields import Field, Refuse, members, set_field
from luckbase.solver.game.game import Game
from luckbase.solver.game.groups import GROUP_TYPE, Axis, Grouped, Groups
from luckbase.solver.game.rules import Level, Numbers, Rules, Unavailable
from luckbase.solver.search.keys import bits_in
from luckbase.solver.sentences import many

HERE = __package__
MAX_CARDS = 15  # the most cards a side
MINE, THEIRS, DECK, UPCARD, LEAD = 0, 1, 2, 3, 4
"""The positions of the fields in a state; for points there is no LEAD."""
CARDS, WIN, ALL_POINTS, KEEP_CARDS = 0, 1, 2, 3
"""Positions in `Numbers.ints`; a stored lead is the lead plus ALL_POINTS."""


class Options(Section):
    """The rule options."""

    cards: int = option(13, 1, MAX_CARDS, "Number of cards of each player, and number of prizes.")
    objective: Literal["points", "win"] = option(
        "points",
        help="The payoff: expected points ahead, or the chance to finish ahead; a draw counts "
        "half.",
    )
    keep_cards: bool = option(
        False,
        help="States keep the cards of both hands, for agents that need them. The payoffs are the "
        "same. Such a board has no full table.",
    )

    @property
    def points(self) -> int:
        """The points of a full deck."""
        return self.cards * (self.cards + 1) // 2


class GoofspielBoard(Board):
    """A board of Goofspiel: only [rules]."""

    game: Literal["goofspiel"]
    rules: Options = Options()


@njit(types.int64(types.int64))
def points_of(deck):
    """Return the points of all cards in a deck."""
    total, k = 0, 1
    while deck:
        total += k * (deck & 1)
        deck >>= 1
        k += 1
    return total


@njit(types.void(types.int64[::1], types.int64[::1]))
def make_canonical(ints, state):
    """Put hands on their lowest ranks, unless cards are kept; empty a decided game. In place."""
    if not ints[KEEP_CARDS]:
        state[MINE], state[THEIRS] = lowest_ranks(state[MINE], state[THEIRS])
    if ints[WIN]:
        lead = state[LEAD] - ints[ALL_POINTS]
        if abs(lead) > points_of(state[DECK]):
            state[:LEAD] = 0
            state[LEAD] = ints[ALL_POINTS] + (1 if lead > 0 else -1)


@njit(rules.TRANSITION_TYPE)
def transition(board, state, edges):  # noqa: C901  # the rules, step by step
    """Write the edges of a state, by the contract in `solver.game.rules`."""
    ints = board.ints
    children, weights, actions, rewards, about = edges
    mine, theirs, deck, upcard = state[MINE], state[THEIRS], state[DECK], state[UPCARD]
    if mine == 0:
        about[0], about[1] = rules.TERMINAL, -1
        if ints[WIN]:
            lead = state[LEAD] - ints[ALL_POINTS]
            rewards[0, 0] = 0.5 + 0.5 * ((lead > 0) - (lead < 0))
            rewards[0, 1] = 1.0 - rewards[0, 0]
        else:
            rewards[0, 0] = rewards[0, 1] = 0.0
        return 0
    n = 0
    if upcard == 0:
        about[0], about[1] = rules.CHANCE, -1
        size = bits_in(deck)
        for k in range(1, ints[CARDS] + 1):
            if deck >> (k - 1) & 1:
                for i in range(state.size):
                    children[n, i] = state[i]
                children[n, UPCARD] = k
                weights[n], actions[n] = 1.0 / size, 0
                rewards[n, 0] = rewards[n, 1] = 0.0
                n += 1
        return n
    about[0], about[1] = rules.SIMULTANEOUS, -1
    for x in range(ints[CARDS]):
        if not mine >> x & 1:
            continue
        for y in range(ints[CARDS]):
            if not theirs >> y & 1:
                continue
            won = upcard * ((x > y) - (x < y))
            for i in range(state.size):
                children[n, i] = state[i]
            children[n, MINE], children[n, THEIRS] = mine ^ (1 << x), theirs ^ (1 << y)
            children[n, DECK], children[n, UPCARD] = deck ^ (1 << (upcard - 1)), 0
            rewards[n, 0] = rewards[n, 1] = 0.0
            if ints[WIN]:
                children[n, LEAD] += won
            else:
                rewards[n, 0], rewards[n, 1] = won, -won
            make_canonical(ints, children[n])
            weights[n], actions[n] = 1.0, rules.joint(x, y)
            n += 1
    return n


@njit(types.void(types.int64[::1], types.int64[:, ::1]))
def make_all_canonical(ints, states):
    """Run `make_canonical` on states (n, fields), in place."""
    for i in range(states.shape[0]):
        make_canonical(ints, states[i])


def as_seen_by(options: Options, player: int, states: Ints) -> Ints:
    """Return states (…, fields) as a player, from 0, sees them; its own inverse."""
    seen = np.array(states, np.int64)
    if player == 1:
        seen[..., [MINE, THEIRS]] = seen[..., [THEIRS, MINE]]
        if options.objective == "win":
            seen[..., LEAD] = 2 * options.points - seen[..., LEAD]
    return seen


@njit(types.UniTuple(types.int64, 2)(types.int64, types.int64))
def lowest_ranks(mine, theirs):
    """Return the same pattern on the lowest ranks, without ranks that neither player holds."""
    low_mine = low_theirs = 0
    bit, both = 1, mine | theirs
    while both:
        rank = both & -both
        both ^= rank
        if mine & rank:
            low_mine |= bit
        if theirs & rank:
            low_theirs |= bit
        bit <<= 1
    return low_mine, low_theirs


@cache
def path_counts() -> Ints:
    """Return D, int64 (a, b, r), a and b 0 to 16, r 0 to 15 (`kernel`).

    The last a and the last b are a border of zeros, for an index of -1.
    """
    d = np.zeros((MAX_CARDS + 2, MAX_CARDS + 2, MAX_CARDS + 1), np.int64)
    d[0, 0] = 1
    for a, b in product(range(MAX_CARDS + 1), repeat=2):
        if a or b:
            d[a, b, 1:] = d[a - 1, b - 1, :-1] + d[a - 1, b, :-1] + d[a, b - 1, :-1]
    return d


def pattern_count(cards: int, size: int) -> int:
    """Return the number of canonical patterns of two hands of `size` cards out of `cards`."""
    d = path_counts()
    return 1 + sum(
        int(d[size - m - 1, size - m, cards - m - 1]) for m in range(min(size, cards - 1))
    )


def sizes_of(masks: Ints) -> Ints:
    """Return the number of cards of each mask, in the shape of `masks`."""
    return sum((masks >> k & 1 for k in range(MAX_CARDS)), np.zeros_like(masks))


# --- bound to a board ----------------------------------------------------------------------------

HANDS = ("mine", "theirs", "deck")
HELP = {
    "mine": "Cards in the hand of player 1.",
    "theirs": "Cards in the hand of player 2, as many as player 1 has.",
    "deck": "Prizes that are left, the one that is turned up among them.",
    "upcard": "The prize that is turned up; leave it out for the moment before it is turned.",
    "lead": "Points by which player 1 is ahead so far; below 0 if behind.",
}
NO_CARDS = Unavailable(
    "keep_cards: tables leave the cards out, because they change no payoff; expected false"
)


def goofspiel(board: GoofspielBoard) -> Rules:
    """Return the rules of Goofspiel on a board."""
    options = board.rules
    cards, points, win = options.cards, options.points, options.objective == "win"
    few = ",".join(map(str, range(1, min(cards, 3) + 1)))
    fields = [set_field(name, cards, help=HELP[name], sample=few) for name in HANDS]
    fields.append(
        Field("upcard", low=1, high=cards, default=0, blank=0, bits=5, help=HELP["upcard"],
              sample=str(min(cards, 3)))
    )  # fmt: skip
    if win:
        fields.append(
            Field("lead", low=-points, high=points, bits=9, help=HELP["lead"], sample="1")
        )
    ints = np.array([cards, win, points, options.keep_cards], np.int64)
    hand = tuple(range(1, cards + 1))
    return Rules(
        fields=fields,
        players=2,
        transition=transition,
        numbers=Numbers(ints, np.zeros(1)),
        max_edges=cards**2,
        actions=action_name,
        start=dict.fromkeys(HANDS, hand),
        canonical=partial(canonical, options, ints),
        tie_tolerance=1e-9,
        payoff_range=(0.0, 1.0) if win else (-float(points), float(points)),
        payoff_name="chance to finish ahead" if win else "expected points ahead",
        pays=not win,  # for winning, the lead holds the points
        simultaneous=True,
        # the cards in a hand; the upcard is turned before the bids for it
        level=Level(falls={"mine": cards + 1, "upcard": -1}, strict=True),
        capabilities={
            FullTable: NO_CARDS if options.keep_cards else f"{HERE}.full_table:Layers",
            Agents: f"{HERE}.agents:own",
            Charts: f"{HERE}.charts:MoveCharts",
            Drawing: f"{HERE}.charts:drawing",
            Groups: groups,
        },
    )


def options_of(game: Game) -> Options:
    assert isinstance(game.board, GoofspielBoard)
    return game.board.rules


def simplify(game: Game, states: Ints) -> Ints:
    """Return states (n, fields) on their lowest ranks, from states that keep the cards."""
    simple = np.array(states, np.int64, order="C")
    make_all_canonical(game.numbers.ints, simple)
    return simple


def choice_names(words: Mapping[str, object], player: int, count: int) -> list[str]:
    """Return names such as ``bid 3``, in the cards of the hand that was named."""
    name = HANDS[player]
    return [f"bid {card}" for card in members(set_field(name, MAX_CARDS).read(words[name])[0])]


def action_name(action: int) -> str:
    """Return ``3 against 5`` for a joint action, in the ranks of the canonical hands."""
    return f"{action // rules.JOINT + 1} against {action % rules.JOINT + 1}"


def canonical(options: Options, ints: Ints, states: Ints, refuse: Refuse) -> Ints:
    """Return canonical states: hands on their lowest ranks; a decided game is the empty state."""
    sizes = sizes_of(states[:, :UPCARD])
    for i, name in ((THEIRS, "theirs"), (DECK, "deck")):
        refuse(
            sizes[:, i] != sizes[:, 0],
            lambda x, i=i, name=name: (
                f"{name}: {many(int(sizes[x, i]), 'card')}, and mine has {sizes[x, 0]}; "
                "both hands and the deck have as many"
            ),
        )
    deck, upcard = states[:, DECK], states[:, UPCARD]
    absent = (upcard > 0) & (deck >> np.maximum(upcard - 1, 0) & 1 == 0)
    refuse(
        absent,
        lambda x: (
            f"upcard: {upcard[x]} is not in deck; a card that is turned up is listed there too"
        ),
    )
    if options.objective == "win":
        gone = options.points - np.array([points_of(cards) for cards in deck], np.int64)
        lead = states[:, LEAD] - options.points
        over = sizes[:, 0] == 0
        refuse(
            (np.abs(lead) > gone) & ~over,
            lambda x: f"lead: {lead[x]} is larger than the sum of the cards gone, {gone[x]}",
        )
    make_all_canonical(ints, states)
    return states


@njit(GROUP_TYPE)
def group(board, state, actor, out, rest):
    """Return the group of a state, by the contract in `solver.game.groups`."""
    cards = bits_in(state[MINE])
    out[2], out[3] = cards, points_of(state[DECK])
    return cards * board.ints[0] + state[UPCARD]


def groups(game: Game) -> Groups:
    """Return the groups: by cards left, and by the upcard."""
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
