"""Made-up games (`tests/games/wild.py`), each solved by plain value iteration and
asked in every way that a table answers."""

from __future__ import annotations

import json
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import luckbase
from luckbase.cluster.search import shards
from luckbase.game import load_game_file
from luckbase.solver.board import registry
from luckbase.solver.game.fields import typed
from luckbase.solver.game.rules import CHANCE, DECISION, JOINT, TERMINAL, room_for
from tests import solving
from tests.places import ROOT
from tests.reference.matrix_game import solve as solve_matrix

State = tuple[int, ...]
CLOSE = 1e-9


class Node(NamedTuple):
    """What can happen: the kind, who acts, and each action's edges, (chance, child, paid)."""

    kind: int
    actor: int
    actions: dict[int, list[tuple[float, State, Any]]]


def graph_of(game, root):
    """All below a state, and the payoffs of those that are over."""
    nodes = {}
    ends = {}
    todo = [root]
    while todo and len(nodes) < 2_000:
        state = todo.pop()
        if state in nodes or state in ends:
            continue
        room = room_for(game.max_edges, len(state), game.players)
        count = game.transition(game.numbers, np.array(state), room)
        if room.about[0] == TERMINAL:
            ends[state] = room.rewards[0].copy()
            continue
        node = Node(int(room.about[0]), int(room.about[1]), {})
        for k in range(count):
            edge = float(room.weights[k]), tuple(room.children[k].tolist()), room.rewards[k].copy()
            node.actions.setdefault(int(room.actions[k]), []).append(edge)
            todo.append(edge[1])
        nodes[state] = node
    return nodes, ends


def action_payoffs(node, values):
    """What each action pays every player."""
    return {a: sum(p * (r + values[y]) for p, y, r in edges) for a, edges in node.actions.items()}


def backed_up(node, values):
    """The payoffs of a state, from those of its children."""
    q = action_payoffs(node, values)
    if node.kind == CHANCE:
        return next(iter(q.values()))
    if node.kind == DECISION:
        return max(q.values(), key=lambda each: each[node.actor])
    rows, columns = ({side(a) for a in q} for side in (lambda a: a // JOINT, lambda a: a % JOINT))
    matrix = [[Fraction(float(q[i * JOINT + j][0])) for j in sorted(columns)] for i in sorted(rows)]
    first = float(solve_matrix(matrix)[0])
    return np.array([first, sum(next(iter(q.values()))) - first])


def ties(node, values):
    """Whether two best actions pay the others differently: then nobody says what those get."""
    if node.kind != DECISION:
        return False
    q = action_payoffs(node, values).values()
    best = max(each[node.actor] for each in q)
    close = [each for each in q if each[node.actor] > best - 1e-7]
    return any(np.abs(each - close[0]).max() > CLOSE for each in close)


@pytest.fixture(scope="module", autouse=True)
def _games():
    with patch.object(registry, "entries", dict(registry.entries)):
        load_game_file(ROOT / "tests/games/wild.py")
        yield


BOARDS = st.fixed_dictionaries({
    "seed": st.integers(0, 1 << 30), "players": st.integers(1, 3), "kind": st.integers(0, 12),
    "turns": st.integers(1, 8), "pays": st.booleans(), "at_once": st.booleans(),
    "cycles": st.booleans(),
})  # fmt: skip


@pytest.mark.slow
@given(BOARDS, st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=300)
def test_hundreds_of_games(tmp_path_factory, options, by_stages, draw):
    asked_in_every_way(tmp_path_factory.mktemp("wild"), options, by_stages, draw)


@given(BOARDS, st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=8)
@example({"seed": 5, "players": 2, "kind": 9, "turns": 8, "pays": True, "at_once": False,
          "cycles": True}, True, Random(1))  # fmt: skip
def test_games_are_asked_in_every_way(tmp_path_factory, options, by_stages, draw):
    asked_in_every_way(tmp_path_factory.mktemp("wild"), options, by_stages, draw)


def asked_in_every_way(folder, options, by_stages, draw):
    if options["cycles"]:  # where both choose at once a cycle is refused
        options = options | {"at_once": False}
    path = folder / "wild.toml"
    text = (f"{name} = {str(value).lower()}" for name, value in options.items())
    path.write_text("\n".join(['game = "wild"', "[rules]", *text]))
    board = luckbase.load_board(path)
    game = solving.load_game(board)
    root = game.parse({})
    nodes, ends = graph_of(game, tuple(root.tolist()))
    if not nodes or len(nodes) >= 2_000:
        return
    values = ends | {state: np.zeros(game.players) for state in nodes}
    change = 1.0
    while change > 1e-13:
        change = 0.0
        for state in sorted(nodes):  # few turns first
            new = backed_up(nodes[state], values)
            change = max(change, float(np.abs(new - values[state]).max()))
            values[state] = new
    if any(ties(node, values) for node in nodes.values()):
        return
    with patch.object(shards, "SHARD_STATES", 50):
        how = {"one_piece": 0, "workers": 1} if by_stages else {"one_piece": 1 << 40}
        solving.solve_below(board, root[None], results=folder, **how)
    with luckbase.open(board, results=folder) as table:
        hold(game, table, nodes, values, draw)


def hold(game, table, nodes, values, draw):
    """Every way to ask a table says the payoffs that value iteration says."""
    assert len(table) == len(nodes) and table.verify(sample=200).ok
    states = list(nodes)
    assert table.probe(np.array(states)) == pytest.approx(np.array([values[s] for s in states]))
    payoffs = [f"payoff_{i + 1}" for i in range(game.players)]
    frame = table.to_pandas()
    columns = [name for name in frame.columns if name in game.fields.columns]
    again = table.values(frame[columns])
    assert len(frame) == len(nodes) and (again[payoffs] == frame[payoffs]).all(axis=None)
    name = draw.choice(columns)
    cell = draw.choice(frame[name].tolist())
    word = f"{name}='{cell}'" if isinstance(cell, str) else f"{name}={cell}"
    assert len(table.to_pandas(word)) == (frame[name] == cell).sum()
    for state in draw.sample(states, min(4, len(states))):
        answer, node = table[game.describe(np.array(state))], nodes[state]
        assert answer.value == pytest.approx(tuple(values[state]), abs=CLOSE)
        form = json.loads(json.dumps(answer.as_json()))["state"]
        words = " ".join(f"{key}={value}" for key, value in typed(form).items())
        assert table[form].value == table[words].value == answer.value
        if node.kind == DECISION:
            assert answer.to_act == node.actor + 1 and len(answer.actions) == len(node.actions)
        there = table.moves(form)
        for each in (there, *there.moves):
            if each.outcomes and node.kind in (CHANCE, DECISION):
                assert sum(item.chance for item in each.outcomes) == pytest.approx(1)
