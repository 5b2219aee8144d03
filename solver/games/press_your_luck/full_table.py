"""The full table of Press Your Luck, and the decisions beyond its frontier.

See `tiers` for the order of the states in a tier and `kernel` for the algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import njit, types
from luckbase.solver.errors import StateError, Stopped
from luckbase.solver.game.arrays import FLOAT64_ERROR, NO_BEST, Best, Floats, Ints, Runs
from luckbase.solver.game.capabilities import DecisionLayout, FullTable
from luckbase.solver.game.game import Game
from luckbase.solver.games.press_your_luck import tiers
from luckbase.solver.games.press_your_luck.board import outcome_distribution
from luckbase.solver.games.press_your_luck.choosing import make_choosing
from luckbase.solver.games.press_your_luck.kernel import solve_plane
from luckbase.solver.games.press_your_luck.outcomes import LOSES, MAY_LOSE
from luckbase.solver.games.press_your_luck.rules import (
    FIELDS,
    MERGES,
    board_of,
    by_field,
)
from luckbase.solver.games.press_your_luck.tiers import PAIR, A, B, C, Tier, Whammies
from luckbase.solver.sentences import many, option, setting


@njit(types.void(*[types.float64[::1]] * 2, *[types.float32[::1]] * 3))
def _narrow(v0, v1, a, b, c):  # type: ignore[no-untyped-def]
    """Convert float64 payoffs of slots A and B to float32 of A, B and C (never below 0)."""
    for i in range(v0.size):
        a[i], b[i] = v0[i], v1[i]
        c[i] = max(1.0 - v0[i] - v1[i], 0.0)


BIG_ROWS = 1 << 24
"""Tiers with this many states are solved by several threads if there are cores."""
BLOCK_ROWS = 1 << 16
"""States that a thread gets at a time: about 0.8 ms of work for 0.05 ms of Python."""
CACHED_ROWS = 1 << 17
"""States of a pair of scores whose payoffs, 2 MB, a core's cache holds."""
THREADS = 16
WAYS = np.array([[math.comb(n, k) for n in range(64)] for k in range(6)])
"""[k, n]: the binomial coefficient n over k."""


def sweep_planes(
    fill: Callable[[int, int, int], None], size: tuple[int, int], edge: int, threads: int
) -> None:
    """Fill size[0] planes of size[1] rows, from the highest scores down, with ``fill(b, first,
    stop)``: rows of plane b. Several threads fill square blocks, all blocks of a diagonal at once,
    because no block of a diagonal reads another."""
    planes, rows = size
    if threads == 1:
        for b in range(planes - 1, -1, -1):
            fill(b, 0, rows)
        return

    def block(corner: tuple[int, int]) -> None:
        b, a = (edge * i for i in corner)
        for plane in range(min(b + edge, planes) - 1, b - 1, -1):
            fill(plane, a, min(a + edge, rows))

    with ThreadPoolExecutor(threads) as pool:
        for line in diagonals(-(-planes // edge), -(-rows // edge)):
            list(pool.map(block, line))


def diagonals(planes: int, rows: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the lists of (b, a) with equal sums, the highest sum first."""
    for total in range(planes + rows - 2, -1, -1):
        yield [(b, total - b) for b in range(max(0, total - rows + 1), min(planes, total + 1))]


class Planes(FullTable[Tier]):
    """Round 2 for two or three players. Rows are states without an offer; the others are one step
    of the rules away."""

    best_names: ClassVar[tuple[str, ...]] = ("play", "pass to 1", "pass to 2", "pass to 3")
    smaller: ClassVar[str] = "a smaller frontier or a larger score_unit"
    left_out: ClassVar[Mapping[str, str]] = {
        "offer": "states with an offer are not rows of a full table; luckbase query answers them"
    }

    def __init__(self, game: Game, spins: int | None = None) -> None:
        """spins: of the highest tiers; by default the frontier."""
        super().__init__(game)
        self.board = board_of(game)
        self.outcomes = outcome_distribution(self.board)
        self.unit, self.cap = self.board.solve.score_unit, self.board.cap_units
        self.size = self.cap + 1
        self.most = self.board.rules.max_whammies
        less = any(e.kind in (LOSES, MAY_LOSE) for offer, _ in self.outcomes.others for e in offer)
        self.whammies = Whammies(game.players, self.most, bool(game.numbers.ints[MERGES]), less)
        self.frontier = spins or self.board.solve.frontier
        self.payoff_type = np.dtype(self.board.solve.payoffs).type

    def tiers(self) -> Sequence[Tier]:
        return tiers.depth_first(self.frontier, self.whammies)

    def children(self, tier: Tier) -> Sequence[Tier]:
        return tiers.children(tier, self.whammies)

    def tier_number(self, tier: Tier) -> int:
        return self._number(tier.spins, tier.whammies)

    def _number(self, spins: Any, whammies: Iterable[Any]) -> Any:
        """Return spins and whammies in mixed radix, the same for every frontier."""
        for w in whammies:
            spins = spins * (self.most + 1) + w
        return spins

    def tier_fields(self, tier: Tier) -> dict[str, int]:
        return {"spins": tier.spins} | {f"whammies_{i + 1}": w for i, w in enumerate(tier.whammies)}

    def tier_name(self, tier: Tier) -> str:
        return f"spins {tier.spins}, whammies {','.join(map(str, tier.whammies))}"

    def three(self, tier: Tier) -> bool:
        """Return whether three players are in, not two."""
        return tier.slots(self.most)[tiers.B] >= 0

    def _count(self, tier: Tier) -> int:
        last = 3 + 2 * self.three(tier)  # numbers that its spins are divided into
        return math.comb(tier.spins + last, last)

    def shape(self, tier: Tier) -> tuple[int, ...]:
        n_b = self.size if self.three(tier) else 1
        return 2, n_b, self.size, self._count(tier) * self.size

    def rows(self, tier: Tier) -> int:
        return math.prod(self.shape(tier)[1:])

    def block_rows(self, tier: Tier) -> int:
        return self.shape(tier)[3]

    def most_threads(self, tier: Tier) -> int:
        return THREADS if self.three(tier) and self.rows(tier) >= BIG_ROWS else 1

    def tier_seconds(self, tier: Tier) -> float:
        """30 ns a row, 60 if the states of a pair of scores exceed a core's cache (measured on
        1985-02, with two threads)."""
        return (60e-9 if self.block_rows(tier) > CACHED_ROWS else 30e-9) * self.rows(tier)

    def edge(self, tier: Tier) -> int:
        """Return the edge of the square blocks of rows that threads get."""
        return math.ceil(math.sqrt(BLOCK_ROWS / self.block_rows(tier)))

    def compile(self) -> None:
        # The smallest possible board: the compiled types do not depend on sizes.
        small = {"score_cap": self.unit, "frontier": 1, "outcomes": "all"}
        solve = self.board.solve.model_copy(update=small)
        layout = Planes(Game(self.board.model_copy(update={"solve": solve}), self.game.rules))
        tier = layout.tiers()[-1]
        payoffs, below = (np.empty(layout.shape(tier)) for _ in range(2))
        layout.solve_tier(tier, payoffs, lambda child: below, lambda: False)
        layout.payoff_rows(tier, payoffs, 0, layout.rows(tier))

    def solve_tier(
        self, tier: Tier, out: Floats, fetch: Callable[[Tier], Floats], stop: Callable[[], bool],
        part: int = 0, best: Best | None = None,
        boundaries: Mapping[Tier, Mapping[int, Floats]] = {},
    ) -> float:  # fmt: skip
        """boundaries: of child tiers, by slot, as `tiers.boundary_of`; other children are fetched:
        the tier with one spin less and, if a slide takes whammies away, with a whammy less."""

        def child(lower: Tier) -> Floats:
            if lower.spins == 0:
                return tiers.terminal(self.three(lower), self.size)
            return fetch(lower)

        def boundary(lower: Tier, slot: int) -> Floats:
            if lower in boundaries:
                return boundaries[lower][slot]
            three = self.three(lower)
            return tiers.boundary_of(slot, child(lower), lower.spins, three, self.size)

        three, options = self.three(tier), self.board.rules
        below = child(self.whammies.tier(tier.spins - 1, tier.whammies))
        slots = tier.slots(self.most)
        spin_cap = options.spin_cap or tier.spins
        outcomes = self.outcomes if tier.spins <= spin_cap else self.outcomes.without_spins()
        choices = None
        if self.outcomes.others:
            has_whammy = [slot >= 0 and tier.whammies[slot] > 0 for slot in slots]
            less = tuple(
                child(self.whammies.tier_with_less(tier, slot)) if has else below
                for slot, has in zip(slots, has_whammy, strict=True)
            )
            choices = less, np.array(has_whammy, np.int64), make_choosing(outcomes, self.cap)
        passing = np.array(slots, np.int8) + np.int8(1)  # passing to player i is action i + 1
        kernel = (
            out, below, tiers.whammy_boundaries(tier, self.whammies, self.size, boundary),
            (three, options.third_place_spins, options.tied_pass == "passer"),
            tiers.moves_of(tier.spins, three), tiers.make_taps(outcomes, self.cap),
            choices, tiers.make_caps(tier.spins, three, choices is not None),
            (NO_BEST if best is None else best, passing),
        )  # fmt: skip

        def fill(b: int, first: int, last: int) -> None:
            if stop():
                raise Stopped
            if not solve_plane(b, (first, last), *kernel):
                raise StateError(
                    f"{self.tier_name(tier)}: best replies do not settle; run: luckbase solve with "
                    "--from, to search what lies below a state"
                )

        threads = min(self.threads, self.most_threads(tier))
        sweep_planes(fill, (out.shape[1], out.shape[2]), self.edge(tier), threads)
        return self.most_error(tier)

    def most_error(self, tier: Tier) -> float:
        return FLOAT64_ERROR

    def payoff_rows(
        self, tier: Tier, payoffs: Floats, start: int, stop: int
    ) -> list[NDArray[np.floating[Any]]]:
        v0, v1 = payoffs.reshape(2, -1)[:, start:stop]
        if self.payoff_type is np.float64:
            columns = [v0, v1, np.maximum(1.0 - v0 - v1, 0.0)]
        else:
            columns = [np.empty(stop - start, np.float32) for _ in range(3)]
            _narrow(v0, v1, *columns)
        by_player = dict(zip(tier.slots(self.most), columns, strict=True))
        gone = np.zeros(stop - start, self.payoff_type)
        return [by_player.get(player, gone) for player in range(self.game.players)]

    def kernel_planes(self, tier: Tier) -> tuple[int, int]:
        return tier.slots(self.most)[:2]

    def state_rows(self, tier: Tier, start: int, stop: int) -> dict[str, NDArray[np.int32] | Runs]:
        block = self.block_rows(tier)
        assert start % block == 0 and stop % block == 0
        blocks = np.arange(start // block, stop // block, dtype=np.int32)
        repeated = tiers.block_columns(
            tier.spins, self.three(tier), self.size, self.unit, len(blocks)
        )
        names = [name for name in self.game.columns if not name.startswith("whammies")]
        columns: dict[str, NDArray[np.int32] | Runs]
        columns = dict.fromkeys(names, repeated[7])  # 0: for a player who is out, and for no offer
        for slot, player in enumerate(tier.slots(self.most)):
            if player < 0:
                continue
            if slot == tiers.C:
                columns[f"scores_{player + 1}"] = repeated[6]
            else:
                score = blocks // self.size if slot == tiers.B else blocks % self.size
                columns[f"scores_{player + 1}"] = Runs(score * np.int32(self.unit), block)
            columns[f"earned_{player + 1}"] = repeated[2 * slot]
            columns[f"passed_{player + 1}"] = repeated[2 * slot + 1]
        return columns

    def acting_rows(self, tier: Tier, start: int, stop: int) -> NDArray[np.int8]:
        block = self.block_rows(tier)
        assert start % block == 0 and stop % block == 0
        slots = tier.slots(self.most)
        return tiers.acting_column(tier.spins, slots, self.size, (stop - start) // block)

    def locate(self, states: Ints) -> tuple[Ints, Ints]:
        states = np.asarray(states, np.int64).reshape(-1, self.game.field_count)
        _, earned, passed, whammies = by_field(states)
        spins, inside = (earned + passed).sum(axis=1), whammies < self.most
        players = inside.sum(axis=1)
        over = (spins == 0) | (players < 2)
        numbers = np.where(over, -1, self._number(spins, whammies.T))
        rows, running = np.full(len(states), -1, np.int64), np.flatnonzero(~over)
        if len(running):
            rows[running] = self._rows_of(
                spins[running], players[running] > 2, inside[running], states[running]
            )
        offers = states[:, FIELDS * self.game.players :].any(axis=1)
        numbers[offers & ~over] = -2
        return numbers, rows

    def _rows_of(
        self, spins: Ints, three: NDArray[np.bool_], inside: NDArray[np.bool_], states: Ints
    ) -> Ints:
        """Return the rows of states (n, fields) with these spins (n,) in their tiers.

        three: bool (n,), whether three players are in. inside: bool (n, players), who is in.
        """
        index = np.arange(len(states))
        a, c = inside.argmax(axis=1), inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
        (score_a, ea, pa), (score_c, _, pc) = (
            [field[index, player] for field in by_field(states)[:3]] for player in (a, c)
        )
        score_b, eb, pb = (field[:, 1] * three for field in by_field(states)[:3])
        # The number of earlier rows: rows with more of the first number that differs.
        last = 3 + 2 * three
        rest = spins - pa
        before = WAYS[last, rest + last - 1]
        rest = rest - ea
        before += WAYS[last - 1, rest + last - 2]
        rest = rest - pb
        before += WAYS[3, rest + 2] * three
        rest = rest - eb
        before += WAYS[2, rest + 1] * three + rest - pc
        block = score_a + score_b * self.size
        return (block * WAYS[last, spins + last] + before) * self.size + score_c

    def states_at(self, tier: Tier, rows: Ints) -> Ints:
        block_row, score_c = np.divmod(np.asarray(rows, np.int64), self.size)
        block, configuration = np.divmod(block_row, self._count(tier))
        score_b, score_a = np.divmod(block, self.size)
        spins = tiers.moves_of(tier.spins, self.three(tier)).configurations[configuration]
        states = np.zeros((len(block_row), self.game.field_count), np.int64)
        scores, earned, passed, whammies = by_field(states)
        whammies[:] = tier.whammies
        for slot, player in enumerate(tier.slots(self.most)):
            if player >= 0:
                scores[:, player] = (score_a, score_b, score_c)[slot]
                earned[:, player] = spins[:, 2 * slot]
                passed[:, player] = spins[:, 2 * slot + 1]
        return states

    def why_outside(self, state: Ints) -> str | None:
        _, earned, passed, _ = by_field(np.asarray(state))
        spins = int((earned + passed).sum())
        if spins <= self.frontier:
            return None
        return (
            f"beyond this table's frontier: {many(spins, 'spin')} in all and the table covers "
            f"{self.frontier}; solve with {setting('frontier', spins)}, or search with "
            f"{option('max_states')}"
        )

    def opening_questions(self) -> Iterator[tuple[str, dict[str, object]]]:
        cap = self.board.solve.score_cap
        shares = (
            ("ahead, one spin left", (0.0, 0.5, 0.35), (0, 1, 0)),
            ("far ahead, one spin left", (0.0, 0.4, 0.15), (0, 1, 0)),
            ("the same with two spins", (0.0, 0.4, 0.15), (0, 2, 0)),
            ("the first to go, well behind", (0.05, 0.15, 0.2), (2, 0, 0)),
            ("both have a spin, second ahead", (0.15, 0.25, 0.2), (1, 1, 0)),
            ("three spins, far ahead", (0.0, 0.4, 0.15), (0, 3, 0)),
        )
        questions: list[dict[str, object]] = []
        for title, of_three, spins in shares:
            parts, earned = list(of_three), spins[: self.game.players]
            if self.game.players == 2:  # the higher opponent is the only one
                up = int(not earned[0])
                parts[1 - up] = max(parts[:up] + parts[up + 1 :])
            if sum(earned) <= self.frontier:
                parts = [round(part * cap / self.unit) * self.unit for part in parts[: len(earned)]]
                state: dict[str, object] = {"scores": parts, "earned": earned}
                if state not in questions:  # with few scores two may round to one
                    questions.append(state)
                    yield title, state


class PlaneDecisions(DecisionLayout[Tier]):
    """The decisions beyond the frontier, solved without storing payoffs (`tiers.by_whammies`).

    Only two levels of spins, and boundaries, are in memory. A tier reads in full only the tier with
    one spin less and the same whammies. Of all others it reads the states after a whammy: a score
    of 0 and no passed spins for the player who was up (`tiers.boundary_of`).
    """

    layout: Planes

    def __init__(self, game: Game) -> None:
        self.frontier = board_of(game).solve.frontier
        self.layout = Planes(game, board_of(game).depth)
        self.size, self.whammies = self.layout.size, self.layout.whammies
        self.three = self.layout.three

    def compile(self) -> None:
        self.layout.compile()

    def tiers(self) -> Sequence[Tier]:
        return tiers.by_whammies(self.layout.frontier, self.whammies)

    def is_decided(self, tier: Tier) -> bool:
        return tier.spins > self.frontier

    def below(self, tier: Tier) -> Tier | None:
        tier_below = self.whammies.tier(tier.spins - 1, tier.whammies)
        return tier_below if tier_below.spins else None

    def boundaries_read(self, tier: Tier) -> Sequence[Tier]:
        below = self.below(tier)
        return [child for child in self.layout.children(tier) if child != below]

    def _boundary_shapes(self, tier: Tier) -> dict[int, tuple[int, ...]]:
        n, three = self.size, self.three(tier)
        lost = tiers.lost_configurations(tier.spins + 1, three)
        n_b = n if three else 1
        shapes: dict[int, tuple[int, ...]] = {A: (2, n_b, len(lost[A][0]), n), C: (2, n_b, n)}
        if three:
            return shapes | {B: (2, n, len(lost[B][0]), n)}
        return shapes | {PAIR: (n, len(tiers.configurations(tier.spins, False)), n)}

    def boundary_size(self, tier: Tier) -> int:
        return sum(int(np.prod(shape)) for shape in self._boundary_shapes(tier).values())

    def take_boundary(self, tier: Tier, payoffs: Floats, out: Floats) -> None:
        three = self.three(tier)
        for slot, part in self._pieces(tier, out).items():
            part[:] = tiers.boundary_of(slot, payoffs, tier.spins, three, self.size)

    def _pieces(self, tier: Tier, boundary: Floats) -> dict[int, Floats]:
        shapes, start = self._boundary_shapes(tier), 0
        pieces = {}
        for slot, shape in shapes.items():
            stop = start + int(np.prod(shape))
            pieces[slot], start = boundary[start:stop].reshape(shape), stop
        return pieces

    def solve_tier(
        self, tier: Tier, out: Floats, below: Floats | None, boundaries: Mapping[Tier, Floats],
        stop: Callable[[], bool], best: Best | None,
    ) -> float:  # fmt: skip
        pieces = {lower: self._pieces(lower, boundaries[lower]) for lower in boundaries}

        def fetch(lower: Tier) -> Floats:
            assert below is not None and lower == self.below(tier)
            return below

        return self.layout.solve_tier(tier, out, fetch, stop, 0, best, pieces)
