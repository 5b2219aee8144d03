"""Press Your Luck solved for its decisions alone: two levels of spins and faces in memory, and the
best actions laid out in blocks and runs.

One whammy vector after another goes up through all spins (`tiers.by_whammies`). A tier reads the
one of a spin less and the same whammies whole; of all others only what a whammy leads to: a score
of 0, the passed spins of whoever was up gone (`tiers.face_of`). So of T spins and n scores a face
of slot A has C(T + 4, 4) n^2 states where the tier has C(T + 5, 5) n^3.

Stored are the configurations in which somebody decides (`Moves.regions`), `[configuration][score
B][score A][score C]`, each code xored with that of one unit less of A: where the decision does not
change that is 0.

Payoffs in memory are float32 if the bound of `Planes.decision_error` holds: no slide leaves a
choice, and no passer chooses between two level rivals. The two passes of such a choice are often
closer than float32 can tell, and the one that is taken changes the payoffs of the others.

Measured at $500 and three spins (zstd level 3): .007 to .010 bytes a state; in
the order of the rows .020, and in the order of the blocks without xor .012 to .013.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import njit, types
from luckbase.solver.game.arrays import Decisions, Floats, Ints, Runs
from luckbase.solver.game.capabilities import DecisionLayout
from luckbase.solver.game.game import Game
from luckbase.solver.games.press_your_luck import tiers
from luckbase.solver.games.press_your_luck.layout import Planes
from luckbase.solver.games.press_your_luck.tiers import PAIR, A, B, C, Tier

BLOCK = 1 << 16
"""Codes of a block, about: whole configurations, at least one."""
RUN_CODES = 1 << 22
"""Codes that are cut into runs at a time, about."""
OWN_LAST = {A: (2, 0, 3, 1), B: (2, 1, 3, 0), C: (2, 0, 1, 3)}
"""By slot, the axes of rows with the configuration first and the slot's own score last."""


class PlaneDecisions(DecisionLayout[Tier]):
    """The decisions of round 2 of two or three players."""

    layout: Planes
    faces_travel = True

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        self.size, self.whammies = self.layout.size, self.layout.whammies
        self.three = self.layout.three
        rules = self.layout.board.rules
        if not self.layout.outcomes.others and (game.players == 2 or rules.tied_pass == "next"):
            self.memory_type = np.float32

    def compile(self) -> None:
        self.layout.compile(self.memory_type)

    def tiers(self) -> Sequence[Tier]:
        return tiers.by_whammies(self.layout.frontier, self.whammies)

    def below(self, tier: Tier) -> Tier | None:
        tier_below = self.whammies.tier(tier.spins - 1, tier.whammies)
        return tier_below if tier_below.spins else None

    def faces_read(self, tier: Tier) -> Sequence[Tier]:
        below = self.below(tier)
        return [child for child in self.layout.children(tier) if child != below]

    def _face_shapes(self, tier: Tier) -> dict[int, tuple[int, ...]]:
        """By slot, the shapes of what `tiers.face_of` gives of a tier."""
        n, three = self.size, self.three(tier)
        lost = tiers.lost_configurations(tier.spins + 1, three)
        n_b = n if three else 1
        shapes: dict[int, tuple[int, ...]] = {A: (2, n_b, len(lost[A][0]), n), C: (2, n_b, n)}
        if three:
            return shapes | {B: (2, n, len(lost[B][0]), n)}
        return shapes | {PAIR: (n, len(tiers.configurations(tier.spins, False)), n)}

    def face_size(self, tier: Tier) -> int:
        return sum(int(np.prod(shape)) for shape in self._face_shapes(tier).values())

    def take_face(self, tier: Tier, payoffs: Floats, out: Floats) -> None:
        three = self.three(tier)
        for slot, part in self._pieces(tier, out).items():
            part[:] = tiers.face_of(slot, payoffs, tier.spins, three, self.size)

    def _pieces(self, tier: Tier, face: Floats) -> dict[int, Floats]:
        shapes, at = self._face_shapes(tier), 0
        pieces = {}
        for slot, shape in shapes.items():
            stop = at + int(np.prod(shape))
            pieces[slot], at = face[at:stop].reshape(shape), stop
        return pieces

    def solve_tier(
        self, tier: Tier, out: Floats, below: Floats | None, faces: Mapping[Tier, Floats],
        stop: Callable[[], bool], decisions: Decisions | None,
    ) -> float:  # fmt: skip
        tier_below = self.below(tier)

        def child(lower: Tier) -> Floats:
            if below is None:
                return tiers.terminal(self.three(lower), self.size).astype(out.dtype, copy=False)
            return below

        def face(lower: Tier, slot: int) -> Floats:
            if lower.spins and lower != tier_below:
                return self._pieces(lower, faces[lower])[slot]
            three = self.three(lower)
            payoffs = child(lower) if lower.spins else tiers.terminal(three, self.size)
            return tiers.face_of(slot, payoffs, lower.spins, three, self.size)

        return self.layout.fill_tier(tier, out, child, face, stop, decisions)

    def decision_error(self, tier: Tier) -> float:
        return self.layout.decision_error(tier) if self.memory_type is np.float32 else 0.0

    # --- what is stored ----------------------------------------------------------------------

    def _decided(self, tier: Tier) -> Ints:
        """The configurations of a tier in which somebody decides."""
        ends = tiers.moves_of(tier.spins, self.three(tier)).regions
        return np.concatenate([np.arange(ends[2 * s + 1], ends[2 * s + 2]) for s in (A, B, C)])

    def _shape(self, tier: Tier) -> tuple[int, int, int, int]:
        """Scores of B and A, configurations, scores of C."""
        n_b, n_a, width = self.layout.shape(tier)[1:]
        return n_b, n_a, width // self.size, self.size

    def _together(self, tier: Tier) -> int:
        """Configurations of a block."""
        n_b, n_a, _, n_c = self._shape(tier)
        return max(1, BLOCK // (n_b * n_a * n_c))

    def block_rows(self, tier: Tier) -> int:
        n_b, n_a, _, n_c = self._shape(tier)
        return self._together(tier) * n_b * n_a * n_c

    def blocks(self, tier: Tier) -> int:
        return -(-len(self._decided(tier)) // self._together(tier))

    def pack(self, tier: Tier, codes: NDArray[np.uint8], block: int) -> NDArray[np.uint8]:
        first = block * self._together(tier)
        which = self._decided(tier)[first : first + self._together(tier)]
        plain = codes.reshape(self._shape(tier))[:, :, which].transpose(2, 0, 1, 3)
        packed = plain.copy()
        packed[:, :, 1:] ^= plain[:, :, :-1]
        return packed.reshape(-1)

    def unpack(self, tier: Tier, packed: NDArray[np.uint8], block: int) -> NDArray[np.uint8]:
        n_b, n_a, _, n_c = self._shape(tier)
        codes: NDArray[np.uint8] = np.bitwise_xor.accumulate(
            packed.reshape(-1, n_b, n_a, n_c), axis=2
        )
        return codes.reshape(-1)

    def place(self, tier: Tier, rows: Ints) -> Ints:
        n_b, n_a, count, n_c = self._shape(tier)
        block, score_c = np.divmod(np.asarray(rows, np.int64), n_c)
        scores, configuration = np.divmod(block, count)
        number = np.full(count, -1)
        decided = self._decided(tier)
        number[decided] = np.arange(len(decided))
        at = number[configuration]
        return np.where(at < 0, -1, (at * (n_b * n_a) + scores) * n_c + score_c)

    def runs(
        self, tier: Tier, codes: NDArray[np.uint8]
    ) -> Iterator[Callable[[], dict[str, NDArray[np.integer[Any]] | Runs]]]:
        ends = tiers.moves_of(tier.spins, self.three(tier)).regions
        n_b, n_a, _, n_c = self._shape(tier)
        together = max(1, RUN_CODES // (n_b * n_a * n_c))
        for slot in (A, B, C):
            for first in range(ends[2 * slot + 1], ends[2 * slot + 2], together):
                span = first, min(first + together, int(ends[2 * slot + 2]))
                yield partial(self._runs_of, tier, slot, span, codes)

    def _runs_of(
        self, tier: Tier, slot: int, span: tuple[int, int], codes: NDArray[np.uint8]
    ) -> dict[str, NDArray[np.integer[Any]] | Runs]:
        """The runs of the configurations of a span, in which this slot decides."""
        shape = np.array(self._shape(tier))
        axes = np.array([*span, *OWN_LAST[slot]])
        count = cut_runs(codes, shape, axes, np.empty((5, 0), np.int32), np.empty(0, np.uint8))
        runs, code = np.empty((5, count), np.int32), np.empty(count, np.uint8)
        cut_runs(codes, shape, axes, runs, code)
        configuration, x, y, start, stop = runs
        spins = tiers.moves_of(tier.spins, self.three(tier)).configurations.astype(np.int32).T
        unit, slots = np.int32(self.layout.unit), tier.slots(self.layout.most)
        others = dict(zip([s for s in (B, A, C) if s != slot], (x, y), strict=True))
        none = Runs(np.zeros(1, np.int32), count)
        names = [name for name in self.layout.game.columns if not name.startswith("whammies")]
        columns: dict[str, NDArray[np.integer[Any]] | Runs] = dict.fromkeys(names, none)
        for s, player in enumerate(slots):
            if player >= 0:
                own = Runs(np.full(1, -1, np.int32), count)
                columns[f"scores_{player + 1}"] = own if s == slot else others[s] * unit
                columns[f"earned_{player + 1}"] = spins[2 * s][configuration]
                columns[f"passed_{player + 1}"] = spins[2 * s + 1][configuration]
        columns["to_act"] = Runs(np.full(1, slots[slot] + 1, np.int8), count)
        return columns | {"from": start * unit, "to": stop * unit, "code": code}


@njit(
    types.int64(
        types.uint8[::1], types.int64[::1], types.int64[::1], types.int32[:, ::1], types.uint8[::1]
    )
)
def cut_runs(codes, shape, axes, runs, code):  # type: ignore[no-untyped-def]
    """How many runs there are; where there is room, they: runs (5, n) configuration, x, y, first,
    last, and code (n,). shape: of codes; axes: the first and the last + 1 of the configurations,
    and which of the axes are these, x, y and the score of who decides, along which runs go."""
    steps = np.ones(4, np.int64)
    for i in range(2, -1, -1):
        steps[i] = steps[i + 1] * shape[i + 1]
    at_x, at_y, at_own = axes[3], axes[4], axes[5]
    n, room = 0, code.size > 0
    for configuration in range(axes[0], axes[1]):
        for x in range(shape[at_x]):
            for y in range(shape[at_y]):
                start = configuration * steps[2] + x * steps[at_x] + y * steps[at_y]
                before = -1
                for own in range(shape[at_own]):
                    value = codes[start + own * steps[at_own]]
                    if value != before:
                        if room:
                            runs[0, n], runs[1, n], runs[2, n] = configuration, x, y
                            runs[3, n], code[n] = own, value
                            if own:
                                runs[4, n - 1] = own - 1
                        n, before = n + 1, value
                if room:
                    runs[4, n - 1] = shape[at_own] - 1
    return n
