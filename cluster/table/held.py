"""Tiers of a full table held in memory, for many lookups all over it.

A million states of a move have ten million children, which lie in a few tiers and all over these.
`TierPart.look` sorts them and reads each row group once a call; here a tier is read once, whole,
and a child costs a place in an array. Tiers give way, the one not used for longest first, where
they would take more memory than allowed; what is larger than that alone is looked up as ever.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.format import start_row
from luckbase.cluster.table.lookup import Lookup
from luckbase.cluster.table.parquet import SealedFile, numbers_of
from luckbase.cluster.table.tiers import GROUPS_A_READ, TierPart
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.graph.bellman import final_payoffs


class Held:
    """A table whose tiers are kept in memory, up to `most` bytes; several threads may ask."""

    def __init__(self, table: Lookup, most: int) -> None:
        self.table, self.most = table, most
        self._part = table.full if isinstance(table.full, TierPart) else None
        self._tiers: OrderedDict[int, NDArray[Any]] = OrderedDict()
        self._lock, self._asking = Lock(), Lock()
        self._loading: dict[int, Lock] = {}
        self._entries: dict[int, list[int]] = {}
        for i, entry in enumerate(self._part.entries if self._part else ()):
            self._entries.setdefault(entry.tier, []).append(i)

    def look(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """As `Lookup.look`."""
        states = np.ascontiguousarray(states)
        if self._part is None:
            with self._asking:
                return self.table.look(states)
        numbers, rows = self._part.layout.locate(states)
        payoffs, found = np.zeros((len(states), self.table.game.players)), numbers < 0
        if found.any():
            payoffs[found] = final_payoffs(self.table.game, states[found])
        for number in np.unique(numbers[~found]).tolist():
            tier = self._tier(number)
            if tier is not None:
                at = np.flatnonzero(numbers == number)
                payoffs[at] = tier[rows[at]]
                found[at] = ~np.isnan(payoffs[at, 0])
        swapped = self._part.layout.swapped(states) & found & (numbers >= 0)
        payoffs[swapped] = payoffs[swapped][:, ::-1]
        left = np.flatnonzero(~found)
        if len(left):
            with self._asking:
                payoffs[left], found[left] = self.table.look(states[left])
        return payoffs, found

    def _tier(self, number: int) -> NDArray[Any] | None:
        """The payoffs (rows, players) of a tier, NaN where it has no row; None where there is none
        of it, or it is too large."""
        assert self._part is not None
        tier = self._part.tier_of_number.get(number)
        if tier is None or number not in self._entries:
            return None
        layout, players = self._part.layout, self.table.game.players
        size = layout.rows(tier) * players * np.dtype(layout.payoff_type).itemsize
        if size > self.most:
            return None
        with self._lock:
            loading = self._loading.setdefault(number, Lock())
        with loading:
            with self._lock:
                if number in self._tiers:
                    self._tiers.move_to_end(number)
                    return self._tiers[number]
            made = self._read(number, layout.rows(tier))
            with self._lock:
                self._tiers[number] = made
                while sum(one.nbytes for one in self._tiers.values()) > self.most:
                    self._tiers.popitem(last=False)
        return made

    def _read(self, number: int, rows: int) -> NDArray[Any]:
        part = self._part
        assert part is not None
        made = np.full((rows, self.table.game.players), np.nan, part.layout.payoff_type)
        for i in self._entries[number]:
            entry = part.entries[i]
            with self._asking:
                about = part.file(i).about
            file = SealedFile(part.storage, part.folder, entry, about)
            for first in range(0, file.groups, GROUPS_A_READ):
                span = list(range(first, min(first + GROUPS_A_READ, file.groups)))
                at = start_row(entry) + first * entry.row_group_rows
                read = file.read_all(span, part.columns)
                for p, column in enumerate(read.columns):
                    made[at : at + len(read), p] = numbers_of(column)
            file.close()
        return made
