"""A table's states as a Markov decision process in the explicit format of the model checker Storm
(stormchecker.org), which solves it from the rules, not from our payoffs.

Three files of one name: ``.tra`` (state, choice, next state, chance), ``.lab``, ``.rew``. States
are numbered like the table's rows. After them come one state for each payoff with which a game
ends, and one final state. Player 1 chooses in the process. The others take the table's best
actions, so the most that player 1 can get is their payoff in the table. Labels: ``init``; ``over``,
the last state; ``won``, if games pay 0 or 1. ``Pmax=? [F "won"]`` is then the payoff;
``Rmax=? [F "over"]`` always is.
"""

import numpy as np

from luckbase.cluster.table.frames import whole_file
from luckbase.cluster.table.parts import Rows
from luckbase.solver.game.rules import DECISION
from luckbase.solver.search.bellman import action_starts, final_payoffs
from luckbase.solver.search.expand import expand

WON = {0.0, 1.0}
AT_ONCE = 20_000
"""States that are expanded at a time."""


def write_process(table, out):
    """Write the files ``out.tra``, … of a finished table of a game of turns that pays at its end;
    returns the number of states."""
    assert not table.game.simultaneous and not table.game.pays and not table.unfinished()
    part = table.parts[0]
    keys = np.concatenate([part.keys(rows) for _, rows in _states(part)])
    finals = {}
    with whole_file(f"{out}.tra") as file:
        file.write(b"mdp\n")
        for number, (rows, states) in _numbered(part):
            _write_edges(file, part, keys, finals, number, rows, states)
        end = len(keys) + len(finals)
        for at in (*finals.values(), end):
            file.write(f"{at} 0 {end} 1\n".encode())
    named = {number: "init" for number in _starts(part, keys)} | {end: "over"}
    if {*finals} <= WON and 1.0 in finals:
        named[finals[1.0]] = "won"
    labels = " ".join(sorted({"init", *named.values()}))
    lines = [f"{number} {label}" for number, label in sorted(named.items())]
    with whole_file(f"{out}.lab") as file:
        file.write("\n".join(["#DECLARATION", labels, "#END", *lines, ""]).encode())
    with whole_file(f"{out}.rew") as file:
        paid = (f"{number} {payoff!r}\n" for payoff, number in finals.items() if payoff)
        file.write("".join(paid).encode())
    return end + 1


def _states(part):
    """(rows, states (k, fields)) of a part, so many at a time, in the order of their keys."""
    for rows in part.scan():
        for start in range(0, len(rows.best), AT_ONCE):
            at = np.arange(start, min(start + AT_ONCE, len(rows.best)))
            yield Rows(rows.states, rows.values[at], rows.best[at], rows.labels), rows.states(at)


def _numbered(part):
    """The same, with the number of the first state of each."""
    number = 0
    for piece in _states(part):
        yield number, piece
        number += len(piece[1])


def _write_edges(file, part, keys, finals, number, rows, states):
    """The lines of states (k, fields), the first of which has this number. finals: payoff -> state,
    grows by what is met."""
    edges = expand(part.game, np.ascontiguousarray(states))
    owners, choices, kept = _choices(part, edges, rows)
    children = part.keys(edges.children)
    at = np.minimum(np.searchsorted(keys, children), len(keys) - 1)
    over = keys[at] != children
    payoffs = final_payoffs(part.game, edges.children[over])[:, 0]
    for payoff in np.unique(payoffs).tolist():
        finals.setdefault(payoff, len(keys) + len(finals))
    at[over] = [finals[payoff] for payoff in payoffs.tolist()]
    lines = np.column_stack([owners + number, choices, at])
    order = np.lexsort(lines.T[::-1])
    order = order[kept[order]]
    lines = lines[order]
    begins = np.flatnonzero(np.append(True, (lines[1:] != lines[:-1]).any(axis=1)))
    chances = np.add.reduceat(edges.weights[order], begins).tolist()
    edges_of = zip(lines[begins].tolist(), chances, strict=True)
    file.write("".join(f"{x} {c} {y} {chance!r}\n" for (x, c, y), chance in edges_of).encode())


def _choices(part, edges, rows):
    """Of each edge (m,): its state, the number of its choice there, whether it is kept: all of who
    chooses and of chance; of the others only those of the best action, their choice 0."""
    owners, starts = action_starts(edges)
    action = np.zeros(len(owners), np.int64)
    action[starts] = 1
    action = np.cumsum(action) - 1
    choices = action - action[edges.first[:-1]][owners]
    forced = ((edges.kinds == DECISION) & (edges.actors > 0))[owners]
    codes, which = np.unique(edges.actions, return_inverse=True)
    labels = {label: code for code, label in enumerate(rows.labels)}
    best = np.array([labels.get(part.game.action_name(code), -2) for code in codes.tolist()])
    kept = ~forced | (best[which] == rows.best[owners])
    return owners, np.where(forced, 0, choices), kept


def _starts(part, keys):
    """The numbers of the states in which searches of the part began, or of the game's start; of the
    first state where there is neither."""
    game = part.game
    roots = [goal.roots for goal in part.manifest.goals if goal.part == part.name]
    starts = [game.parse(start) for each in roots if each for start in each.start]
    if not starts and (start := game.start()) is not None:
        starts = [start]
    if not starts:
        return [0]
    start_keys = part.keys(np.array(starts))
    at = np.minimum(np.searchsorted(keys, start_keys), len(keys) - 1)
    return sorted({*at[keys[at] == start_keys].tolist()})
