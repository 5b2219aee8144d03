"""The bench suite ``round``: the answers of a board's tables on all of its grids, against others.

First solve them: ``luckbase solve press-your-luck/1985-02``. Then
``python -m tests.bench round --results results`` prints three tables.

* Stored decisions at random states with each number of spins. If few states follow (`MOST`), a
  search by the rules alone is the judge; it shares nothing with the table but the rules. Otherwise
  games are, in which everybody follows the stored decisions: no other action may win more often.
  Games find a wrong decision only if the stored ones below it are right.
* Positions off the grid, against a search with steps of $50, of which all amounts are multiples.
* Chances far from the end: their standard error, and the seconds of a whole `query`.
"""

import json
import math
import subprocess
import sys
import time

import numpy as np

from luckbase.cluster.answers.find import open_table, tables_on_grids
from luckbase.cluster.answers.grids import draw_at, levels_of, unit_of, with_choice
from luckbase.cluster.answers.memory import search_in_memory
from luckbase.cluster.answers.moves import play_games
from luckbase.jobs import terminal
from luckbase.solver.errors import SearchLimitError
from luckbase.solver.game.capabilities import position_of
from tests import solving

STATES, POSITIONS, GAMES = 10, 30, 1_000
MOST, MOST_EXACT, EXACT = 1_000_000, 5_000_000, 50
CLOSE = 5e-5
"""Payoffs that differ by less count as equal."""
LARGE = 3.0
"""Standard errors that games must exceed to call a decision wrong: one of 700 does so by chance."""


def round_suite(board, results):
    """Print the three tables."""
    read = solving.load_board(board)
    paths = tables_on_grids(read, results, {})
    tables = [open_table(path, named_by_board=True) for path in paths]
    _decisions(tables)
    _positions(board, results)
    _far(board, results, max(levels_of(tables[-1])), read.solve.score_cap)


def _decisions(tables):
    finest, rng, rows = {}, np.random.default_rng(1), []
    for table in reversed(tables):
        finest |= {level: (table, files) for level, files in levels_of(table).items()}
    for level, (table, files) in sorted(finest.items()):
        states = with_choice(table, draw_at(files, rng))
        # Half of the states have many whammies, because a search can judge these.
        late = states[np.argsort(-_whammies(table, states), kind="stable")[: len(states) // 20]]
        chosen = [*rng.choice(states, STATES // 2), *rng.choice(late, STATES - STATES // 2)]
        judged = [_judged(table, state) for state in chosen]
        losses = [loss for judge, loss in judged if judge == "search"]
        excess = [more for judge, more in judged if judge == "games"]
        rows.append((
            str(level), f"${unit_of(table.game.board)[1]:,}", str(len(losses)),
            str(sum(loss > CLOSE for loss in losses)), f"{max(losses, default=0.0):.1g}",
            str(len(excess)), str(sum(more > LARGE for more in excess)),
            f"{max(excess, default=0.0):.1f}",
        ))  # fmt: skip
    heads = ("spins", "grid", "by search", "wrong", "largest loss", "by games", "wrong",
             "largest excess, standard errors")  # fmt: skip
    terminal.print_table("Stored decisions at random states", heads, rows, sys.stdout)


def _whammies(table, states):
    named = [name.startswith("whammies") for name in table.game.columns]
    return table.game.fields.values(states)[:, named].sum(axis=1)


def _judged(table, state):
    """The judge of a stored decision, and how much the best action gains over it: in payoffs, or,
    by games, in standard errors."""
    (stored,) = table.stored_best(state[None])
    fields = table.game.describe(state)
    try:
        answer = search_in_memory(table.game, state, MOST).ask(fields)
    except SearchLimitError:
        (answer,) = play_games(table, [fields], [GAMES], seed=1)
        first, *others = (each.value[answer.to_act - 1] for each in answer.actions)
        return "games", (max(others) - first) / (math.sqrt(2) * answer.error)
    worth = {each.name: each.value[answer.to_act - 1] for each in answer.actions}
    return "search", max(worth.values()) - worth[stored]


def _positions(board, results):
    exact = solving.load_game(solving.load_board(board, score_unit=EXACT))
    rng, rows, costs, errors = np.random.default_rng(2), [], [], []
    for number in range(POSITIONS):
        sentence = _sentence(rng, 3 + number % 4, exact.board.solve.score_cap)
        state = position_of(exact, sentence).state
        try:
            truth = search_in_memory(exact, state, MOST_EXACT).ask(exact.describe(state))
        except SearchLimitError:
            rows.append((sentence, "too many states", "", "", ""))
            continue
        text, _ = _asked(board, results, sentence)
        worth = {each.name: each.value[truth.to_act - 1] for each in truth.actions}
        costs.append(100 * (max(worth.values()) - worth[text["best"]]))
        errors.append(100 * max(np.abs(np.subtract(text["value"], truth[text["best"]]))))
        rows.append((sentence, truth.best, text["best"], f"{costs[-1]:.2f}", f"{errors[-1]:.1f}"))
    heads = ("position", f"best at ${EXACT}", "answer", "costs, points", "chances off, points")
    terminal.print_table("Positions off the grid", heads, rows, sys.stdout)
    right = sum(cost < 100 * CLOSE for cost in costs)
    print(f"{right} of {len(costs)} actions are best; the others cost {max(costs):.2f} points at "
          f"most; chances are {np.mean(errors):.1f} points off on average, {max(errors):.1f} at "
          "most")  # fmt: skip


def _sentence(rng, spins, cap):
    """A random position with so many spins, in steps of $50."""
    scores = rng.integers(0, 6 * cap // 10 // EXACT, 3) * EXACT
    earned = rng.multinomial(spins, [1 / 3] * 3)
    desks = zip(("Ed", "Peter", "Michael"), scores, earned, strict=True)
    return "; ".join(f"{name} ${score}, {spins} spins" for name, score, spins in desks)


def _asked(board, results, sentence):
    """The answer of ``luckbase query`` as JSON, and its seconds."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "luckbase", "query", str(board), sentence, "--json",
         "--results", str(results)], capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout), time.perf_counter() - began


def _far(board, results, deepest, cap):
    rng, rows = np.random.default_rng(3), []
    for spins in np.linspace(min(16, deepest), deepest, 3).astype(int):
        sentence = _sentence(rng, spins, cap)
        text, seconds = _asked(board, results, sentence)
        chance = 100 * text["value"][text["to_act"] - 1]
        rows.append((sentence, text["best"], f"{chance:.1f}%", text["source"],
                     f"{100 * text['error']:.2f}", f"{seconds:.1f} s"))  # fmt: skip
    heads = ("position", "answer", "chance", "from", "standard error, points", "time")
    terminal.print_table("Far from the end", heads, rows, sys.stdout)
