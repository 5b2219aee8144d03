"""Compute the numbers about Press Your Luck that this folder publishes.

    python results/published/findings.py seats|money|choosing|coarser
    python results/published/findings.py passing TABLE

Run it in a checkout. Each finding is printed as CSV. `seats` needs 13 GB of disk, `coarser` 2 GB.
"""

import csv
import sys
import tempfile
from itertools import pairwise

import numpy as np

import luckbase
from luckbase.cluster.answers.table import search_in_memory
from luckbase.solver import dense
from luckbase.solver.game.capabilities import FullTable
from luckbase.solver.game.game import load_game
from luckbase.solver.games.press_your_luck.outcomes import Start
from luckbase.solver.search.expand import expand

BOARD = "press-your-luck/1985-02"


# --- at what lead to pass ------------------------------------------------------------------------


def leads(table, spins, rival, third, scores):
    """The leads in dollars at which passing is best, as spans: "-4000..-3000 5000..9000".

    Player 2 is up and holds all spins; player 3 is the rival, who gets them; player 1 is the third.
    """
    words = [{"scores": (third, score, rival), "earned": (0, spins, 0)} for score in scores]
    best = table.stored_best(np.array([table.game.parse(each) for each in words]))
    passes = [str(name).startswith("pass") for name in best]
    passing = [score - rival for score, passed in zip(scores, passes, strict=True) if passed]
    spans = np.split(passing, np.flatnonzero(np.diff(passing) > scores.step) + 1) if passing else []
    return " ".join(f"{span[0]}..{span[-1]}" for span in spans)


def money(unit=1000, rivals=(3000, 6000, 10_000)):
    """Playing to win and playing for dollars, with one or two spins left; exact searches."""
    objectives = {
        "win": {"objective": "win"},
        "money": {"objective": "money"},
        "a win for $10,000 and money": {"objective": "win+money", "win_value": 10_000},
    }
    yield "spins", "rival", "plays for", "passes"
    for spins in (1, 2):
        for rival in rivals:
            for name, options in objectives.items():
                game = load_game(luckbase.load_board(BOARD, score_unit=unit, **options))
                scores = range(0, 20_000, unit)
                words = [{"scores": (0, score, rival), "earned": (0, spins, 0)} for score in scores]
                states = np.array([game.parse(each) for each in words])
                table = search_in_memory(game, states)
                yield spins, rival, name, leads(table, spins, rival, 0, scores)


def passing(table):
    """Best play by spins left and scores, from a table of the whole show."""
    options = table.game.board.solve
    yield "spins", "rival_score", "third_score", "passes"
    scores = range(0, options.score_cap, options.score_unit)
    for spins in range(1, table.game.board.depth + 1):
        for rival in range(2000, min(15_000, options.score_cap), 2000):
            for third in range(0, min(rival, 6000) + 1, 2000):
                yield spins, rival, third, leads(table, spins, rival, third, scores)


# --- what a seat is worth ------------------------------------------------------------------------

SEAT_TABLES = (
    {"score_unit": 500, "outcomes": "all", "score_cap": 20_000, "frontier": 4},
    {"score_unit": 1000, "outcomes": 8, "score_cap": 15_000, "frontier": 8},
    {"score_unit": 1500, "outcomes": 8, "score_cap": 15_000, "frontier": 12},
)
"""The finest first; the last goes the farthest."""
SEAT_SCORES = (
    (3000, 3000, 3000), (0, 3000, 3000), (3000, 3000, 6000), (0, 3000, 6000), (0, 0, 6000),
    (0, 6000, 6000),
)  # fmt: skip
MOST_SPINS = 20
"""Spins that four questions can give."""


def by_spins(table, scores):
    """The expected chances to win of the seats, before the first spin, as far as the table goes."""
    most = table.game.board.solve.frontier
    starts = [(float(chance), state) for chance, state in Start(scores=scores).states()
              if 0 < sum(state["earned"]) <= most]  # fmt: skip
    values, is_known = table.get_many(np.array([table.game.parse(state) for _, state in starts]))
    assert is_known.all()
    totals = {}
    weights = {}
    for (chance, state), value in zip(starts, values, strict=True):
        spins = sum(state["earned"])
        totals[spins] = totals.get(spins, 0) + chance * value
        weights[spins] = weights.get(spins, 0) + chance
    return {spins: totals[spins] / weights[spins] for spins in sorted(totals)}


def on_a_line(known, spins):
    """Extrapolate the last four numbers of spins by a straight line; return three chances."""
    last = sorted(known)[-4:]
    fit = np.polyfit(last, np.array([known[x] for x in last]), min(1, len(last) - 1))
    values = np.polyval(fit, spins).clip(0, 1)
    return values / values.sum()


def seats(board=BOARD, tables=SEAT_TABLES, scores=SEAT_SCORES):
    """The chance to win of each seat by spins in all; each number is from the finest table.

    `off_by` adds up the largest differences from table to table, at the same number of spins or at
    the last that both have.
    """
    found = []
    for options in tables:
        with tempfile.TemporaryDirectory(dir=".") as folder:
            read = luckbase.load_board(board, **options)
            with luckbase.open(luckbase.solve(read, results=folder).table) as table:
                found.append({each: by_spins(table, each) for each in scores})
    yield "scores", "spins_in_all", "first", "second", "third", "off_by", "score_unit"
    for each in scores:
        for spins in range(1, MOST_SPINS + 1):
            which = next((k for k, row in enumerate(found) if spins in row[each]), None)
            if which is None:
                values, off, note = on_a_line(found[-1][each], spins), "", "extrapolated"
            else:
                values, note = found[which][each][spins], str(tables[which]["score_unit"])
                pairs = list(pairwise(found))[:which]
                off = f"{sum(apart(*pair, spins) for pair in pairs):.3f}" if pairs else ""
            name = "/".join(map(str, each))
            yield name, spins, *(f"{value:.3f}" for value in values), off, note


def apart(fine, coarse, spins):
    """The largest difference of two tables, at so many spins or at the most that both have."""
    spins_both = min(spins, max(next(iter(fine.values()))))
    return max(
        float(abs(fine[scores][spins_both] - coarse[scores][spins_both]).max()) for scores in fine
    )


# --- what choosing is worth ----------------------------------------------------------------------


def choosing(boards=("1985-02", "1985-02-double", "1984-06", "1984-06-double"), **options):
    """The gain of the player up, in percentage points, if everybody may choose on a slide."""
    yield "board", "spins", "mean", "most", "state", "least", "state", "worse off"
    for name in boards:
        tables = []
        for choices in ("random", "best"):
            settings = {"score_unit": 500, "frontier": 2, **options, "choices": choices}
            read = luckbase.load_board(f"press-your-luck/{name}", **settings)
            tables.append(dense.InMemory(load_game(read).need(FullTable)))
        layout = tables[0].layout
        for spins in sorted({tier.spins for tier in layout.tiers()}):
            here = [tier for tier in layout.tiers() if tier.spins == spins]
            gains = [gain(*tables, tier) for tier in here]
            ends = []
            for pick in (np.argmax, np.argmin):
                k = int(pick([each[pick(each)] for each in gains]))
                best = int(pick(gains[k]))
                state = layout.game.say(layout.states_at(here[k], np.array([best]))[0])
                ends += [f"{100 * gains[k][best]:.2f}", state]
            every = np.concatenate(gains)
            worse = f"{100 * (every < -1e-9).mean():.0f} %"
            yield name, spins, f"{100 * every.mean():.3f}", *ends, worse


def gain(random, best, tier):
    """The gain of the player up in each state of a tier, (rows,)."""
    layout, count = best.layout, best.layout.rows(tier)
    up = layout.acting_rows(tier, 0, count) - 1
    chances = [np.stack(table.layout.payoff_rows(tier, table.payoffs[tier], 0, count))
               for table in (random, best)]  # fmt: skip
    difference = chances[1] - chances[0]
    return difference[up, np.arange(count)]


# --- how far a coarser board is off --------------------------------------------------------------

COARSER = (
    (250, 12), (250, 8), (250, 5), (500, "all"), (500, 12), (500, 7), (500, 5), (1000, "all"),
    (1000, 8), (1000, 6), (1000, 5),
)  # fmt: skip
"""score_unit and outcomes of the coarser boards."""
SAMPLE = 200_000


def coarser(board=BOARD, unit=250, boards=COARSER):
    """Errors of tables of coarser boards, in states with two spins left that both tables have."""
    yield "score_unit", "outcomes", "mean", "99 % below", "largest", "decides otherwise", "costs"
    with tempfile.TemporaryDirectory(dir=".") as folder:

        def solved(unit, outcomes):
            read = luckbase.load_board(board, score_unit=unit, outcomes=outcomes, frontier=2)
            return luckbase.open(luckbase.solve(read, results=folder).table)

        with solved(unit, "all") as exact:
            for grid, outcomes in boards:
                with solved(grid, outcomes) as table:
                    states = np.concatenate(list(table.draw(SAMPLE, 0)))
                    spins = [name.startswith(("earned", "passed")) for name in table.game.columns]
                    states = states[states[:, spins].sum(axis=1) == 2]
                    gaps, costs = errors(exact, table, states)
                high = np.quantile(gaps, 0.99)
                numbers = gaps.mean(), high, gaps.max(), (costs > 0).mean(), costs.mean()
                yield grid, outcomes, *(f"{number:.6f}" for number in numbers)


def errors(exact, table, states):
    """Return the largest error of a payoff of each state, and the cost of each decision.

    A decision costs the player up the difference between the exact table's best action and the
    action that the coarse table takes.
    """
    fine, known = exact.game.known_states(table.game.fields.values(states))
    states, fine = states[known], fine[known]
    gaps = np.abs(exact.get_many(fine)[0] - table.get_many(states)[0]).max(axis=1)
    names = table.stored_best(states)
    edges = expand(exact.game, fine)
    values = exact.action_values(edges)
    costs = []
    for i, actor in enumerate(edges.actors):
        actions = values.actions[values.first[i] : values.first[i + 1]]
        if len(actions) > 1:
            payoffs = values.values[values.first[i] : values.first[i + 1], int(actor)]
            taken = [exact.game.action_name(int(a)) for a in actions].index(names[i])
            cost = float(payoffs.max() - payoffs[taken])
            costs.append(cost if cost > exact.tolerance else 0.0)
    return gaps, np.array(costs)


FINDINGS = {"seats": seats, "money": money, "choosing": choosing, "coarser": coarser}


def main(words):
    """Print one finding."""
    out = csv.writer(sys.stdout, lineterminator="\n")
    if words[:1] == ["passing"]:
        with luckbase.open(words[1]) as table:
            out.writerows(passing(table))
    else:
        out.writerows(FINDINGS[words[0]]())


if __name__ == "__main__":
    main(sys.argv[1:])
