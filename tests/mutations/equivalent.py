"""Mutations that change nothing that anybody could see, each with the reason."""

from __future__ import annotations

import re

from tests.mutations.drawn import Mutation

FILES: dict[str, str] = {}
"""file -> why constants in it may be others."""
PLACES: dict[tuple[str, str, str], str] = {
    ("cluster/run/schedule.py", "self.waiting.remove(index) self.running.add(index)",
     "self.running.add(index) self.waiting.remove(index)"): "two sets, read when both are changed",
    ("jobs/solve.py", "say()", "pass"): "a blank line",
    ("solver/matrix_game/eight_games.py", "store(f, _OVER, over) store(f, _CHOSEN, p)",
     "store(f, _CHOSEN, p) store(f, _OVER, over)"): "two places of one record",
    ("solver/search/sweep.py",
     "while j + step < count and keys[j + step, 0] <= requested[i]:",
     "while j + step < count and keys[j + step, 0] < requested[i]:"): "the second loop finds it",
    ("cluster/search/solve.py",
     "known = boundary.known_payoffs(self.starts(), self._ends.table, limit) "
     "self._take_table(self._ends.table)",
     "self._take_table(self._ends.table) "
     "known = boundary.known_payoffs(self.starts(), self._ends.table, limit)",
     ): "one reads the table, the other its ledger",
    ("solver/matrix_game/eight_games.py",
     "if abs(f[d + i * MAX_SIDE + j]) > abs(f[d + p * MAX_SIDE + q]):",
     "if abs(f[d + i * MAX_SIDE + j]) >= abs(f[d + p * MAX_SIDE + q]):",
     ): "of equal pivots the last",
    ("cluster/play/game.py",
     "reply = answer(self) if isinstance(line, Question) else None "
     "lines.append(line.prompt if isinstance(line, Question) else line)",
     "lines.append(line.prompt if isinstance(line, Question) else line) "
     "reply = answer(self) if isinstance(line, Question) else None"): "who answers sees no lines",
    ("jobs/plots.py", "axes.set_xlabel(picture.x_label) axes.set_ylabel(picture.y_label)",
     "axes.set_ylabel(picture.y_label) axes.set_xlabel(picture.x_label)"): "two axes",
    ("cluster/search/boundary.py", "REMEMBERED, DECODED = 64 << 20, 4",
     "REMEMBERED, DECODED = 65 << 20, 4"): "a cache of another size",
    ("cluster/play/draw.py",
     'picture.attr(rankdir="TB", label=title, labelloc="t", fontname="Helvetica") '
     'picture.attr("node", shape="box", style="rounded", fontname="Helvetica", fontsize="10")',
     'picture.attr("node", shape="box", style="rounded", fontname="Helvetica", fontsize="10") '
     'picture.attr(rankdir="TB", label=title, labelloc="t", fontname="Helvetica")',
     ): "of the graph, and of its nodes",
    ("solver/games/skunk/kernel.py", "s, best = np.zeros((goal + 1, goal + 1)), np.empty(0)",
     "s, best = np.zeros((goal + 1, goal + 2)), np.empty(0)"): "a column that nothing reads",
    ("solver/search/bellman.py",
     "residual: Floats = 2 * np.maximum(error, (game.max_edges + 2) * 2.0**-53 * largest)",
     "residual: Floats = 2 * np.maximum(error, (game.max_edges + 3) * 2.0**-53 * largest)",
     ): "a bound of roundings, one wider",
    ("solver/game/game.py",
     "registry.enter(replace(entry, stamp=stamp(file.text), file=file)) "
     "copyreg.pickle(entry.model(), _reduced)",
     "copyreg.pickle(entry.model(), _reduced) "
     "registry.enter(replace(entry, stamp=stamp(file.text), file=file))"): "two registries",
    ("cluster/table/frames.py", "self._file.write(data) self._at += len(data)",
     "self._at += len(data) self._file.write(data)"): "a count that nobody reads in between",
    ("solver/search/cycles.py",
     "edges = Lotteries(c.children, c.weights, c.actions, np.empty((0, 1))) # nothing is paid",
     "edges = Lotteries(c.children, c.weights, c.actions, np.empty((0, 2))) # nothing is paid",
     ): "of no rows the width is read by nobody",
    ("solver/games/goofspiel/game.py", "weights[n], actions[n] = 1.0 / size, 0",
     "weights[n], actions[n] = 1.0 / size, 1"): "chance has one action, whatever its number",
    ("solver/games/jackpot/game.py", "chances = np.zeros(largest + 1 + options.sides + 1)",
     "chances = np.zeros(largest + 2 + options.sides + 1)"): "a place that nothing reads",
    ("solver/games/pig/agents.py",
     "stationary(game, two) whole, behind, best = ( payoffs(game, one, two, last)[1] for last in "
     "(None, NOT_BEHIND, BEST_RESPONSE) )",
     "whole, behind, best = ( payoffs(game, one, two, last)[1] for last in (None, NOT_BEHIND, "
     "BEST_RESPONSE) ) stationary(game, two)"): "the same refusal, later",
    ("solver/search/explore.py",
     "visited.append(pack_all(game.strides, np.ascontiguousarray(states))) "
     "edges = expansion.expand(game, states)",
     "edges = expansion.expand(game, states) "
     "visited.append(pack_all(game.strides, np.ascontiguousarray(states)))",
     ): "both only read the states",
    ("cluster/table/export.py",
     'book.use_zip64() sheet, bold, done = book.add_worksheet("table"), '
     'book.add_format({"bold": True}), 0',
     'sheet, bold, done = book.add_worksheet("table"), book.add_format({"bold": True}), 0 '
     "book.use_zip64()"): "read when the book is closed",
    ("cluster/run/schedule.py", "todo.add(child) stack.append(child)",
     "stack.append(child) todo.add(child)"): "a set and a list",
    ("cluster/table/ledger.py", "compacted: bool = False",
     "compacted: bool = True"): "every reading of a table says it",
    ("solver/search/stages.py", "reached.append(front) count += len(front)",
     "count += len(front) reached.append(front)"): "a list, and how much is in it",
    ("solver/search/explore.py",
     "PIECE = 1 << 16 # states that `known` is asked of at once",
     "PIECE = 2 << 16 # states that `known` is asked of at once"): "pieces of another size",
    ("solver/search/explore.py",
     "push = rng.standard_normal((n, columns)) * "
     "(rng.random((n, columns)) < rng.random((n, 1)) ** 2)",
     "push = rng.standard_normal((n, columns)) * "
     "(rng.random((n, columns)) <= rng.random((n, 1)) ** 2)",
     ): "no two random fractions are the same",
}  # fmt: skip
"""(file, lines before, lines after) -> why that is the same."""


ARRAY_TYPE = re.compile(r"[\w, ]+ = .*types\.\w+\[.*::1\]")
"""Lines that name types of compiled functions' arrays."""


def reason(mutation: Mutation, source: bytes) -> str:
    """Why a mutation is equivalent, or ""."""
    if mutation.kind == "constant" and mutation.file in FILES:
        return FILES[mutation.file]
    before, after = mutation.shown(source)
    if ARRAY_TYPE.match(before) and before == re.sub(r"::2\b", "::1", after):
        return "an array of any layout is taken where one in a row is passed"
    if mutation.kind == "order" and before.count("os.environ.setdefault") == 2:
        return "two variables of the environment"
    if mutation.kind == "constant" and before.startswith('("#'):
        return "how a line of a chart is dotted"
    return PLACES.get((mutation.file, before, after), "")
