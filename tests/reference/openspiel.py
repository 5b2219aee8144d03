"""A game of OpenSpiel, solved slowly and obviously through its Python package: plain sweeps over
all of its strings.

What this file is for: a reader can hold it beside OpenSpiel's own value_iteration.py, and see that
it does the same with scipy's linear programming in cvxpy's place, and with what is paid on the way;
the product is then tested against it. It imports nothing from the product.

Values are player 1's, of games for one or of two whose payoffs add up to nothing. States are
strings, those where chance is up looked through: they are no states here.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import linprog

Outcomes = list[tuple[float, float, str]]
"""(chance, what is paid to player 1 on the way, string)."""


def outcomes(state: Any, pays: bool) -> Outcomes:
    """Where a position is, or what chance makes of it."""
    paid = state.rewards()[0] if pays else 0.0
    if state.is_terminal() or not state.is_chance_node():
        return [(1.0, paid, str(state))]
    found = []
    for outcome, chance in state.chance_outcomes():
        below = outcomes(state.child(outcome), pays)
        found += [(chance * c, paid + more, text) for c, more, text in below]
    return found


def after(state: Any, actions: tuple[int, ...]) -> Any:
    """The position after a player's action, or after those of all at once."""
    child = state.clone()
    if state.is_simultaneous_node():
        child.apply_actions(list(actions))
    else:
        child.apply_action(actions[0])
    return child


def matrix_value(rows: list[list[float]]) -> float:
    """The value of a zero-sum matrix game to who chooses the row."""
    a = np.array(rows)
    m, n = a.shape
    found = linprog(
        np.r_[np.zeros(m), -1.0],
        A_ub=np.c_[-a.T, np.ones(n)], b_ub=np.zeros(n),
        A_eq=[np.r_[np.ones(m), 0.0]], b_eq=[1.0],
        bounds=[(0, 1)] * m + [(None, None)],
    )  # fmt: skip
    return float(-found.fun)


def values(game: Any, sweeps: int = 10_000) -> dict[str, float]:
    """The value of every string that play comes to, swept until nothing moves by 1e-13."""
    pays = "REWARDS" in str(game.get_type().reward_model)
    root = game.new_initial_state()
    waiting, worth = [root], dict[str, float]()
    leads: dict[str, tuple[Any, list[Outcomes]]] = {}
    while waiting:
        state = waiting.pop()
        if state.is_chance_node():
            waiting += [state.child(outcome) for outcome, _ in state.chance_outcomes()]
            continue
        if str(state) in worth:
            continue
        worth[str(state)] = 0.0
        if state.is_terminal():
            worth[str(state)] = 0.0 if pays else state.returns()[0]
            continue
        both = state.is_simultaneous_node()
        movers = range(game.num_players()) if both else [state.current_player()]
        each = [after(state, actions) for actions in product(*map(state.legal_actions, movers))]
        leads[str(state)] = state, [outcomes(child, pays) for child in each]
        waiting += each
    for _ in range(sweeps):
        change = 0.0
        for text, (state, every) in leads.items():
            q = [sum(c * (paid + worth[there]) for c, paid, there in each) for each in every]
            if state.is_simultaneous_node() and game.num_players() == 2:
                columns = len(state.legal_actions(1))
                new = matrix_value([q[i : i + columns] for i in range(0, len(q), columns)])
            else:
                new = min(q) if state.current_player() == 1 else max(q)
            change, worth[text] = max(change, abs(new - worth[text])), new
        if change < 1e-13:
            break
    return worth
