"""A game of OpenSpiel as ours: its graph, found once through pyspiel; the transition looks it up.

OpenSpiel's states are Python objects that no compiled engine can call. So the rules are made by
expanding all of the game, breadth first (3 us an edge, one core), into arrays that become the
board's numbers: threads, Ray's workers, cycles, stages and verification see a game like any other,
and pyspiel is not called again. State number k is the k-th found, its name OpenSpiel's string, on
one line.

docs/how-to/openspiel.md says what is one state, and what is refused. `Graph.hold_to_plays` plays at
random through pyspiel and compares every position with the graph; a difference is refused. That is
a test, no proof: only with "histories" is nothing merged.

Source: Lanctot et al., OpenSpiel: A framework for reinforcement learning in games (2019).
"""

from __future__ import annotations

import hashlib
import random
from array import array
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from itertools import product
from operator import add
from typing import Any, Literal, NoReturn

import numpy as np

from luckbase.solver.board.model import Board, Section, option
from luckbase.solver.compiled import njit
from luckbase.solver.errors import OptionError, need
from luckbase.solver.game import rules
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import View
from luckbase.solver.game.fields import Field, Names, word
from luckbase.solver.game.rules import (
    CHANCE,
    DECISION,
    JOINT,
    SIMULTANEOUS,
    TERMINAL,
    WEIGHT,
    Numbers,
    Rules,
)
from luckbase.solver.sentences import nearest, setting, shorten

MAX_STATES, MAX_EDGES = 1_000_000, 20_000_000
"""Some 400 bytes of memory a state while they are found, 40 an edge for ever."""
STEPS, PLAYS = 10_000, 1_000
"""Moves, and plays, at random that the graph is held to, at most."""
HELP = "The position as OpenSpiel writes it, on one line: _ for a space, / for a new line."
UNNAMED = -1
"""The action of chance, until all others have their numbers."""
HEAD = 2
"""The board's whole numbers: states n, edges m; then where each state's edges begin (n + 1), kind
and actor of each (n), child and action of each edge (m). Its fractions: the chances (m), what each
edge pays each player (m * players). A state that is over has one edge, which holds its payoff."""


class Options(Section):
    """The rule options."""

    load: str = option("tic_tac_toe", help="The game as pyspiel.load_game takes it.")
    states: Literal["strings", "moves", "histories"] = option(
        "strings",
        help="What makes two positions one state: OpenSpiel's string of them; the string and how "
        "many moves were made; or all moves that were made.",
    )


class OpenSpielBoard(Board):
    """A game of OpenSpiel."""

    game: Literal["openspiel"] = "openspiel"
    rules: Options = Options()


@njit(rules.TRANSITION_TYPE)
def transition(board, state, edges):
    """The edges of a state, by the contract in `solver.game.rules`."""
    ints, reals = board
    n, m = ints[0], ints[1]
    x, players = state[0], edges.rewards.shape[1]
    kinds = HEAD + n + 1
    first, count = ints[HEAD + x], ints[HEAD + x + 1] - ints[HEAD + x]
    kind = ints[kinds + x] & 3
    edges.about[0], edges.about[1] = kind, (ints[kinds + x] >> 2) - 1
    for k in range(count):
        e = first + k
        edges.children[k, 0], edges.actions[k] = ints[kinds + n + e], ints[kinds + n + m + e]
        edges.weights[k] = reals[e]
        for p in range(players):
            edges.rewards[k, p] = reals[m + e * players + p]
    return 0 if kind == rules.TERMINAL else count


def openspiel(board: OpenSpielBoard) -> Rules:
    """The rules of a game of OpenSpiel. Raises OptionError for one that is not taken."""
    need("a game of OpenSpiel", "pyspiel", extra="openspiel")
    import pyspiel

    text = board.rules.load
    graph = Graph(text, _loaded(pyspiel, text), board.rules.states)
    graph.find()
    graph.hold_to_plays()
    return graph.rules()


class _Refused(OptionError):
    """Raised with the name of the game."""

    def __init__(self, game: str, why: str) -> None:
        super().__init__(f"openspiel:{shorten(game, 80)}: {why}")


def _loaded(pyspiel: Any, text: str) -> Any:
    """The game of this name and parameters. Raises OptionError."""
    short = text.partition("(")[0].strip()
    if short not in pyspiel.registered_names():
        known = nearest(short, pyspiel.registered_names())
        raise _Refused(text, f"OpenSpiel {version('open_spiel')} has no such game; {known}")
    try:
        game = pyspiel.load_game(text)
    except Exception as error:  # SpielError, RuntimeError, TypeError
        raise _Refused(text, f"OpenSpiel says: {shorten(str(error), 160)}") from None
    kind = game.get_type()
    for wrong, why in (
        (kind.dynamics == pyspiel.GameType.Dynamics.MEAN_FIELD,
         "is a game of mean fields, whose rewards depend on how all play"),
        (kind.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC,
         "draws what chance does and does not say how likely it is"),
        (kind.information == pyspiel.GameType.Information.IMPERFECT_INFORMATION,
         "hides something from its players; games of perfect information are solved"),
    ):  # fmt: skip
        if wrong:
            raise _Refused(text, why)
    return game


class Graph:
    """All positions of a game of pyspiel's, and what leads from each to which."""

    def __init__(self, text: str, game: Any, states: str) -> None:
        self.text, self.game, self.states, self.players = text, game, states, game.num_players()
        self.pays = game.get_type().reward_model == type(game.get_type()).RewardModel.REWARDS
        self.numbers: dict[tuple[str, int], int] = {}
        self.parts: dict[Any, int] = {}  # what tells positions of one string apart, numbered
        self.names: dict[str, int] = {}
        self.actions: dict[str, int] = {}
        self.choices: dict[int, list[list[str]]] = {}
        """By name what each player can choose, of the states in which both choose at once."""
        self.first, self.kinds, self.below, self.chosen = (array("q") for _ in range(4))
        self.chances, self.paid = array("d"), array("d")
        self.so_far = [0.0, 0.0]  # the least and the most that was paid to anybody on the way here

    def refuse(self, why: str) -> NoReturn:
        """Raises OptionError with the game's name."""
        raise _Refused(self.text, why)

    def find(self) -> None:
        """Expand all positions, breadth first. Raises OptionError."""
        root, nothing = self.game.new_initial_state(), (0.0,) * self.players
        waiting = deque([(root, nothing)])
        self.number(root)
        while waiting:
            state, paid = waiting.popleft()
            x, kind = len(self.kinds), self.kind(state)
            self.first.append(len(self.below))
            self.kinds.append(kind)
            if kind == SIMULTANEOUS:
                self.choices[x] = [self.called(state, player) for player in (0, 1)]
            if kind == TERMINAL:
                self._add(x, UNNAMED, 1.0, nothing if self.pays else state.returns())
            for action, chance, child in self.edges(state):
                known = len(self.numbers)
                rewards = child.rewards() if self.pays else nothing
                self._add(self.number(child), action, chance, rewards)
                if len(self.numbers) > known:
                    after = tuple(map(add, paid, rewards))
                    self.so_far = [min(self.so_far[0], *after), max(self.so_far[1], *after)]
                    waiting.append((child, after))
            if len(self.numbers) > MAX_STATES or len(self.below) > MAX_EDGES:
                self.refuse(
                    f"has more than {MAX_STATES:,} states, or {MAX_EDGES:,} edges; take smaller "
                    "parameters"
                )
        self.first.append(len(self.below))

    def _add(self, child: int, action: int, chance: float, rewards: Sequence[float]) -> None:
        self.below.append(child)
        self.chosen.append(action)
        self.chances.append(chance)
        self.paid.extend(rewards)

    def number(self, state: Any) -> int:
        """The number of a position, a new one of a new one."""
        key = self.key(state)
        number = self.numbers.setdefault(key, len(self.numbers))
        if number == len(self.names):
            name, twin = word(key[0]) or "-", 1
            while (name if twin == 1 else f"{name}~{twin}") in self.names:
                twin += 1
            self.names[name if twin == 1 else f"{name}~{twin}"] = number
        return number

    def key(self, state: Any) -> tuple[str, int]:
        """What makes a position the same as another: its string, and a number for the rest."""
        text, part = str(state).rstrip("\n"), self._part(state)
        if self.states == "moves":
            text += f"@{state.move_number()}"
        elif self.states == "histories":
            text += "@" + ",".join(map(str, state.history()))
        return text, self.parts.setdefault(part, len(self.parts))

    def _part(self, state: Any) -> Any:
        if state.is_terminal():
            return None if self.pays else (*state.returns(),)
        if state.is_chance_node():
            return (*((chance, str(child)) for _, chance, child in self.edges(state)),)
        return state.current_player(), *(tuple(state.legal_actions(p)) for p in self.movers(state))

    def movers(self, state: Any) -> Sequence[int]:
        """Who chooses at a state, players from 0."""
        if not state.is_simultaneous_node():
            return (state.current_player(),)
        if self.players > 2:
            self.refuse(f"players who choose at once: {self.players}; expected at most two")
        return range(self.players)

    def kind(self, state: Any) -> int:
        """The kind of a state, and 4 times who acts, from 1; 0 where nobody does."""
        if state.is_terminal():
            return TERMINAL
        if state.is_chance_node():
            return CHANCE
        movers = self.movers(state)
        return DECISION + 4 * (movers[0] + 1) if len(movers) == 1 else SIMULTANEOUS

    def edges(self, state: Any) -> Iterator[tuple[int, float, Any]]:
        """(action, its chance, the position after it) of all edges, in the order of the rules."""
        if state.is_chance_node():
            for outcome, chance in state.chance_outcomes():
                if chance > 0:
                    yield UNNAMED, chance, state.child(outcome)
            return
        movers = () if state.is_terminal() else self.movers(state)
        legal = [state.legal_actions(player) for player in movers]
        if len(movers) == 2:
            for row, column in product(*legal):
                child = state.clone()
                child.apply_actions([row, column])
                yield row * JOINT + column, 1.0, child
            return
        for actions in legal:
            for name, action in zip(self.called(state, movers[0]), actions, strict=True):
                child = state.clone()
                if state.is_simultaneous_node():  # of a game for one
                    child.apply_actions([action])
                else:
                    child.apply_action(action)
                yield self.actions.setdefault(name, len(self.actions)), 1.0, child

    def called(self, state: Any, player: int) -> list[str]:
        """What OpenSpiel calls what a player can choose, each by a name of its own."""
        legal = state.legal_actions(player)
        said = [state.action_to_string(player, action).strip() for action in legal]
        if len(set(said)) == len(said):
            return said
        return [f"{name} [{action}]" for name, action in zip(said, legal, strict=True)]

    def hold_to_plays(self) -> None:
        """Play at random through pyspiel, and compare every position on the way, and what is paid
        in the end, with the graph. Raises OptionError where they differ."""
        rng, steps, root = random.Random(1), 0, self.game.new_initial_state()
        for _ in range(PLAYS):
            state, x, paid = root, 0, [0.0] * self.players
            while steps < STEPS and not state.is_terminal():
                leads = list(self.edges(state))
                k, steps = rng.randrange(len(leads)), steps + 1
                before, state = state, leads[k][2]
                e = self.first[x] + k
                paid = [*map(add, paid, self._paid(e))]
                x = self.below[e]
                if self.numbers.get(self.key(state)) != x:
                    self._refuse_merging(before, state)
            if steps >= STEPS:
                return
            total = map(add, paid, self._paid(self.first[x]))
            if not np.allclose([*total], state.returns(), rtol=1e-9, atol=1e-9):
                self._refuse_merging(state, state)

    def _paid(self, edge: int) -> Sequence[float]:
        return self.paid[edge * self.players : (edge + 1) * self.players]

    def _refuse_merging(self, before: Any, state: Any) -> NoReturn:
        others = [setting("states", kind) for kind in ("moves", "histories")]
        others = others[("strings", "moves", "histories").index(self.states) :]
        why = (
            f"OpenSpiel's strings leave out what matters: '{shorten(word(str(before)), 60)}' does "
            f"not always lead to '{shorten(word(str(state)), 60)}' as it does after the moves "
            f"{shorten(', '.join(map(str, state.history())), 60)}"
        )
        self.refuse(why + f"; write {' or '.join(others)}" * bool(others))

    def rules(self) -> Rules:
        """The rules that look it up. Raises OptionError for what no rules say."""
        first, kinds, below, chosen = (
            np.array(array, np.int64) for array in (self.first, self.kinds, self.below, self.chosen)
        )
        n, chances = len(kinds), np.array(self.chances)
        chosen[chosen == UNNAMED] = len(self.actions)
        paid = np.array(self.paid).reshape(len(below), self.players)
        ints = np.concatenate([[n, len(below)], first, kinds, below, chosen])
        reals = np.concatenate([chances, paid.reshape(-1)])
        totals = np.add.reduceat(chances, first[:-1])[kinds == CHANCE]
        if (np.abs(totals - 1) > WEIGHT).any():
            self.refuse(f"chances add up to {totals[np.abs(totals - 1).argmax()]:.13g}; expected 1")
        names, actions = list(self.names), list(self.actions)
        said = hashlib.sha256(ints.tobytes() + reals.tobytes())
        said.update("\n".join([*names, "", *actions]).encode())
        return Rules(
            fields=[Field("state", high=n - 1, names=Names(names), help=HELP)],
            players=self.players,
            transition=transition,
            numbers=Numbers(ints, reals),
            max_edges=int(np.diff(first).max()),
            actions=actions,
            start={},
            version=int(said.hexdigest()[:12], 16),
            payoff_range=self._range(first, kinds, paid),
            pays=self.pays,
            simultaneous=bool((kinds == SIMULTANEOUS).any()),
            capabilities={View: View(choice_names=partial(choice_names, self.names, self.choices))},
        )

    def _range(self, first: Ints, kinds: Ints, paid: Floats) -> tuple[float, float]:
        """The least and the greatest payoff of a state. Raises OptionError where both players
        choose at once, and what one gets is not what the other loses."""
        over = paid[first[:-1][kinds == TERMINAL]]
        if not len(over):
            self.refuse("no play of it ends")
        sums = (paid if self.pays else over).sum(axis=1)
        if (kinds == SIMULTANEOUS).any() and np.ptp(sums) > 1e-9:
            self.refuse(
                "both players choose at once, and their payoffs do not always have the same sum"
            )
        if self.pays:
            low, high = self.game.min_utility(), self.game.max_utility()
            return low - self.so_far[1], high - self.so_far[0]
        return float(over.min()), float(over.max())


def choice_names(
    numbers: Mapping[str, int], choices: Mapping[int, list[list[str]]],
    words: Mapping[str, object], player: int, count: int,
) -> list[str]:  # fmt: skip
    """What OpenSpiel calls what a player can choose where both choose at once."""
    return choices[numbers[str(words["state"])]][player]
