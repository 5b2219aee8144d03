"""Mutations that change nothing that anybody could see, each with the reason."""

from __future__ import annotations

from tests.mutations.drawn import Mutation

FILES: dict[str, str] = {}
"""file -> why constants in it may be others."""
PLACES: dict[tuple[str, str, str], str] = {
    ("cluster/run/schedule.py", "self.waiting.remove(index) self.running.add(index)",
     "self.running.add(index) self.waiting.remove(index)"): "two sets, read when both are changed",
    ("jobs/terminal/solve_report.py", "render.say()", "pass"): "a blank line",
    ("solver/matrix_game/eight_games.py", "store(f, _OVER, over) store(f, _CHOSEN, p)",
     "store(f, _CHOSEN, p) store(f, _OVER, over)"): "two places of one record",
    ("solver/search/stage_kernels.py",
     "while j + step < count and keys[j + step, 0] <= wanted[i]:",
     "while j + step < count and keys[j + step, 0] < wanted[i]:"): "the second loop finds it",
    ("cluster/search/solve.py",
     "given = known_payoffs(self.game, self.root_states, self._ends.table, most) "
     "self._take_table(self._ends.table)",
     "self._take_table(self._ends.table) "
     "given = known_payoffs(self.game, self.root_states, self._ends.table, most)",
     ): "one reads the table, the other its ledger",
    ("solver/matrix_game/eight_games.py",
     "if abs(f[d + i * MOST + j]) > abs(f[d + p * MOST + q]):",
     "if abs(f[d + i * MOST + j]) >= abs(f[d + p * MOST + q]):"): "of equal pivots the last",
    ("solver/games/press_your_luck/scene.py",
     "shapes += _desk(i, WIDE + gap + i * (DESK + gap), top, role, desk, most) "
     "said.append(_said(i, desk, inside[i]))",
     "said.append(_said(i, desk, inside[i])) "
     "shapes += _desk(i, WIDE + gap + i * (DESK + gap), top, role, desk, most)"): "two lists",
    ("cluster/run/lock.py", "sweep(storage, table, ledger) compact(storage, ledger)",
     "compact(storage, ledger) sweep(storage, table, ledger)"): "by the same ledger, in memory",
}  # fmt: skip
"""(file, lines before, lines after) -> why that is the same."""


def reason(mutation: Mutation, source: bytes) -> str:
    """Why a mutation is equivalent, or ""."""
    if mutation.kind == "constant" and mutation.file in FILES:
        return FILES[mutation.file]
    return PLACES.get((mutation.file, *mutation.shown(source)), "")
