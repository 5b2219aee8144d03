"""Press Your Luck bound to a board: what `solver.game.rules` asks of every game."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numba as nb
import numpy as np
from numpy.typing import NDArray

from luckbase.solver.board.model import Board, nearest
from luckbase.solver.errors import StateError
from luckbase.solver.game.decisions import Decisions, kernel_arrays
from luckbase.solver.game.rules import Agent, Floats, Ints, Numbers, Stopped
from luckbase.solver.game.tiered import TieredGame
from luckbase.solver.games.press_your_luck import rules, tables, tiers
from luckbase.solver.games.press_your_luck.board import PressYourLuckBoard, outcome_distribution
from luckbase.solver.games.press_your_luck.choosing import TIE_TOLERANCE
from luckbase.solver.games.press_your_luck.kernel import solve_plane
from luckbase.solver.games.press_your_luck.tiers import Tier
from luckbase.solver.njit import njit

FLOAT64_ERROR = 1e-12
"""What float64 sums lose, with room to spare."""

MONEY = "scores"
MOST_SPINS = 1000
"""Spins that a state may hold; beyond any game, and small enough to count with."""


@njit(
    nb.void(
        nb.float64[::1], nb.float64[::1], nb.float32[::1], nb.float32[::1], nb.float32[::1]
    ),
    cache=True,
    nogil=True,
)  # fmt: skip
def _narrow(v0, v1, a, b, c):  # type: ignore[no-untyped-def]
    """float64 payoffs of slots A and B -> float32 of A, B and C (never below 0)."""
    for i in range(v0.size):
        a[i], b[i] = v0[i], v1[i]
        c[i] = max(1.0 - v0[i] - v1[i], 0.0)


class PressYourLuck(TieredGame[Tier]):
    """Three players, round 2; see `rules` for the game and `tiers` for the order of the states."""

    rules_version: ClassVar[int] = 1
    players: ClassVar[int] = 3
    fields: ClassVar[tuple[tuple[str, int], ...]] = (
        ("scores", 3),
        ("earned", 3),
        ("passed", 3),
        ("whammies", 3),
    )
    tie_tolerance: ClassVar[float] = TIE_TOLERANCE
    best_names: ClassVar[tuple[str, ...]] = ("play", "pass to 1", "pass to 2", "pass to 3")
    smaller: ClassVar[str] = "a smaller frontier or a larger score_unit"

    def __init__(self, board: Board) -> None:
        assert isinstance(board, PressYourLuckBoard)
        super().__init__(board)
        self.board: PressYourLuckBoard = board
        self.outcomes = outcome_distribution(board)
        self.unit = board.solve.score_unit
        self.cap = board.cap_units
        self.size = self.cap + 1
        self.most = board.rules.max_whammies
        self.frontier = board.solve.frontier
        self.max_edges = self.outcomes.distinct + 3
        self.bits = np.array([8] * 3 + [5] * 6 + [3] * 3)  # a game's questions give 20 spins

    # --- rules -------------------------------------------------------------------------------

    @property
    def successors(self) -> Callable[..., int]:
        return rules.successors

    @cached_property
    def numbers(self) -> Numbers:
        options = self.board.rules
        chosen = (self.cap, self.most, options.third_place_spins, options.tied_pass == "passer")
        return Numbers(*rules.numbers(chosen, self.outcomes))

    def parse(self, words: Mapping[str, str]) -> Ints:
        names = [name for name, _ in self.fields]
        for name in words:
            if name not in names:
                raise StateError(f"unknown field '{name}'; {nearest(name, names)}")
        if MONEY not in words:
            raise StateError("scores is missing; write the three scores as scores=0,2000,3500")
        numbers = [x for name in names for x in _three(name, words.get(name, "0,0,0"))]
        state: Ints = self.canonical_states(np.array([numbers], np.int64))[0]
        return state

    def canonical_states(self, values: Ints) -> Ints:
        values = np.asarray(values, np.int64).reshape(-1, rules.FIELDS)
        scores, earned, passed, whammies = (values[:, i : i + 3] for i in range(0, 12, 3))
        top, out = self.board.solve.score_cap, whammies == self.most

        def refuse(wrong: NDArray[np.bool_], sentence: Callable[[int, int], str]) -> None:
            if wrong.any():
                row, player = (int(x) for x in np.argwhere(wrong)[0])
                where = f"row {row + 1}: " if len(values) > 1 else ""
                raise StateError(where + sentence(row, player))

        refuse(
            (scores < 0) | (scores > top) | (scores % self.unit != 0),
            lambda x, i: f"scores: {scores[x, i]} {self._off_grid(int(scores[x, i]))}",
        )
        for name, held in (("earned", earned), ("passed", passed), ("whammies", whammies)):
            refuse(held < 0, _negative(name, held))
        refuse(
            whammies > self.most,
            lambda x, i: f"whammies: {whammies[x, i]} is too many; {self.most} put a player out",
        )
        for name, held in (("scores", scores), ("earned", earned), ("passed", passed)):
            refuse(
                out & (held > 0),
                _out_with(name, held, self.most),
            )
        refuse(
            out.all(axis=1, keepdims=True),
            lambda x, i: "whammies: all three players are out; somebody must be in",
        )
        spins = earned.sum(axis=1, keepdims=True) + passed.sum(axis=1, keepdims=True)
        refuse(
            spins > MOST_SPINS,
            lambda x, i: f"earned and passed: {spins[x, 0]} spins; the most is {MOST_SPINS}",
        )
        merged = np.where(~out & (whammies + spins < self.most), 0, whammies)
        return np.hstack([scores // self.unit, earned, passed, merged])

    def _off_grid(self, value: int) -> str:
        top = self.board.solve.score_cap
        if value < 0:
            return "is negative; the least is 0"
        if value > top:
            return f"is above this board's cap of ${top}; nearest is {top}"
        low = value // self.unit * self.unit
        return f"is not on this board's ${self.unit} grid; nearest are {low} and {low + self.unit}"

    def describe(self, state: Ints) -> dict[str, Any]:
        parts = np.asarray(state).reshape(4, 3).tolist()
        parts[0] = [v * self.unit for v in parts[0]]
        return {name: part for (name, _), part in zip(self.fields, parts, strict=True)}

    def agents(self) -> Mapping[str, Agent]:
        from luckbase.solver.games.press_your_luck.agents import AGENTS

        return AGENTS

    def state_columns(self, states: Ints) -> dict[str, NDArray[np.int32]]:
        columns = super().state_columns(states)
        for name in self.columns[:3]:
            columns[name] *= np.int32(self.unit)
        return columns

    def shard_keys(self, states: Ints) -> Ints:
        # Who holds how many spins: what lies below changes it, and less than anything else.
        held = np.asarray(states)[:, rules.EARNED : rules.WHAMMIES]
        found: Ints = (held * 21 ** np.arange(6)).sum(axis=1)
        return found

    def action_name(self, action: int) -> str:
        return "play" if action == rules.PLAY else f"pass to {action}"

    # --- tiers -------------------------------------------------------------------------------

    def tiers(self) -> Sequence[Tier]:
        return tables.depth_first(self.frontier, self.most)

    def children(self, tier: Tier) -> Sequence[Tier]:
        return tables.children(tier, self.most)

    def tier_number(self, tier: Tier) -> int:
        return tiers.tier_number(tier, self.most)

    def tier_fields(self, tier: Tier) -> dict[str, int]:
        return {"spins": tier.spins} | {f"whammies_{i + 1}": w for i, w in enumerate(tier.whammies)}

    def tier_name(self, tier: Tier) -> str:
        return tier.name

    def _three(self, tier: Tier) -> bool:
        return len(tier.players_in(self.most)) == 3

    def _count(self, tier: Tier) -> int:
        return len(tiers.configurations(tier.spins, self._three(tier)))

    def shape(self, tier: Tier) -> tuple[int, ...]:
        n_b = self.size if self._three(tier) else 1
        return 2, n_b, self.size, self._count(tier) * self.size

    def rows(self, tier: Tier) -> int:
        return int(np.prod(self.shape(tier)[1:]))

    def block_rows(self, tier: Tier) -> int:
        return self.shape(tier)[3]

    def compile(self) -> None:
        # The smallest board there is: the compiled types do not depend on sizes.
        smallest = self.board.solve.model_copy(update={"score_cap": self.unit, "frontier": 1})
        game = PressYourLuck(self.board.model_copy(update={"solve": smallest}))
        tier = game.tiers()[-1]
        payoffs = np.empty(game.shape(tier))
        game.solve_tier(tier, payoffs, lambda child: np.empty(game.shape(child)), lambda: False)
        game.payoff_rows(tier, payoffs, 0, game.rows(tier))

    def solve_tier(
        self,
        tier: Tier,
        out: Floats,
        fetch: Callable[[Tier], Floats],
        stop: Callable[[], bool],
        part: int = 0,
        decisions: Decisions | None = None,
    ) -> float:
        three = self._three(tier)

        def child(wanted: Tier) -> Floats:
            if wanted.spins == 0:
                return tables.terminal(self._three(wanted), self.size)
            return fetch(wanted)

        lay, caps = tiers.layout(tier.spins, three), tables.make_caps(tier.spins, three)
        taps = tables.make_taps(self.outcomes, self.cap)
        below = child(tiers.canonical_tier(tier.spins - 1, tier.whammies, self.most))
        wa, wb, wc = tables.whammy_faces(tier, self.most, self.size, child)
        options = self.board.rules
        passing = np.array(tiers.slots_of(tier.players_in(self.most))) + 1  # to player i is i + 1
        notes = (*kernel_arrays(decisions), passing.astype(np.int8))
        for b in range(out.shape[1] - 1, -1, -1):
            if stop():
                raise Stopped
            solve_plane(
                b, out, below, wa, wb, wc, taps.whammy, taps.again,
                (three, options.third_place_spins, options.tied_pass == "passer"),
                (lay.regions, lay.spend, lay.gain, lay.passes), lay.runs,
                (taps.rows, taps.weights, taps.money, taps.count),
                (taps.moves, taps.chances, taps.plain_money),
                (caps.orders, caps.counts, caps.pivot_of, caps.powers), notes,
            )  # fmt: skip
        return FLOAT64_ERROR

    def payoff_rows(
        self, tier: Tier, payoffs: Floats, start: int, stop: int
    ) -> list[NDArray[np.floating[Any]]]:
        flat = payoffs.reshape(2, -1)
        a, b, c = (np.empty(stop - start, np.float32) for _ in range(3))
        _narrow(flat[0, start:stop], flat[1, start:stop], a, b, c)
        by_player = dict(zip(tiers.slots_of(tier.players_in(self.most)), (a, b, c), strict=True))
        gone = np.zeros(stop - start, np.float32)
        return [by_player.get(player, gone) for player in range(3)]

    def state_rows(self, tier: Tier, start: int, stop: int) -> dict[str, NDArray[np.int32]]:
        block = self.block_rows(tier)
        assert start % block == 0 and stop % block == 0
        blocks = np.arange(start // block, stop // block, dtype=np.int32)
        repeated = tiers.block_columns(
            tier.spins, self._three(tier), self.size, self.unit, len(blocks)
        )
        columns = dict.fromkeys(self.columns[:9], repeated[7])  # 0: for a player who is out
        for slot, player in enumerate(tiers.slots_of(tier.players_in(self.most))):
            if player < 0:
                continue
            if slot == tiers.C:
                columns[f"scores_{player + 1}"] = repeated[6]
            else:
                score = blocks // self.size if slot == tiers.B else blocks % self.size
                columns[f"scores_{player + 1}"] = np.repeat(score * np.int32(self.unit), block)
            columns[f"earned_{player + 1}"] = repeated[2 * slot]
            columns[f"passed_{player + 1}"] = repeated[2 * slot + 1]
        return columns

    def acting_rows(self, tier: Tier, start: int, stop: int) -> NDArray[np.int8]:
        block = self.block_rows(tier)
        assert start % block == 0 and stop % block == 0
        slots = tiers.slots_of(tier.players_in(self.most))
        return tiers.acting_column(tier.spins, slots, self.size, (stop - start) // block)

    def locate(self, states: Ints) -> tuple[Ints, Ints]:
        states = np.asarray(states, np.int64).reshape(-1, rules.FIELDS)
        spins = states[:, rules.EARNED : rules.WHAMMIES].sum(axis=1)
        whammies = states[:, rules.WHAMMIES :]
        over = (spins == 0) | ((whammies < self.most).sum(axis=1) < 2)
        number = spins
        for i in range(3):
            number = number * (self.most + 1) + whammies[:, i]
        numbers = np.where(over, -1, number)
        rows = np.full(len(states), -1, np.int64)
        order = np.argsort(numbers, kind="stable")
        bounds = np.flatnonzero(np.diff(numbers[order], prepend=-2, append=-2))
        for first, last in pairwise(bounds):
            at = order[first:last]
            if numbers[at[0]] >= 0:
                tier = tiers.tier_from_number(int(numbers[at[0]]), self.most)
                rows[at] = self._rows_of(tier, states[at])
        return numbers, rows

    def _rows_of(self, tier: Tier, states: Ints) -> Ints:
        three = self._three(tier)
        a, b, c = tiers.slots_of(tier.players_in(self.most))
        held = [
            states[:, base + player] if player >= 0 else np.zeros(len(states), np.int64)
            for player in (a, b, c)
            for base in (rules.EARNED, rules.PASSED)
        ]
        ea, pa, eb, pb, _, pc = held
        configuration = tiers.configuration_lookup(tier.spins, three)[pa, ea, pb, eb, pc]
        scores = states[:, rules.SCORE :]
        block = scores[:, a] + (scores[:, b] * self.size if three else 0)
        row: Ints = (block * self._count(tier) + configuration) * self.size + scores[:, c]
        return row

    def states_at(self, tier: Tier, rows: Ints) -> Ints:
        three = self._three(tier)
        rest, score_c = np.divmod(np.asarray(rows, np.int64), self.size)
        block, configuration = np.divmod(rest, self._count(tier))
        score_b, score_a = np.divmod(block, self.size)
        held = tiers.layout(tier.spins, three).configurations[configuration]
        states = np.zeros((len(rest), rules.FIELDS), np.int64)
        states[:, rules.WHAMMIES :] = tier.whammies
        scores = (score_a, score_b, score_c)
        for slot, player in enumerate(tiers.slots_of(tier.players_in(self.most))):
            if player >= 0:
                states[:, rules.SCORE + player] = scores[slot]
                states[:, rules.EARNED + player] = held[:, 2 * slot]
                states[:, rules.PASSED + player] = held[:, 2 * slot + 1]
        return states

    def why_outside(self, state: Ints) -> str | None:
        spins = int(np.asarray(state)[rules.EARNED : rules.WHAMMIES].sum())
        if spins <= self.frontier:
            return None
        return (
            f"beyond this table's frontier: {spins} spins in all and the table covers "
            f"{self.frontier}; solve with --set frontier={spins}, or search with --max-states"
        )

    def opening_questions(self) -> Iterator[tuple[str, dict[str, str]]]:
        cap = self.board.solve.score_cap
        shares = (
            ("ahead, one spin left", (0.0, 0.5, 0.35), (0, 1, 0)),
            ("far ahead, one spin left", (0.0, 0.4, 0.15), (0, 1, 0)),
            ("the same with two spins", (0.0, 0.4, 0.15), (0, 2, 0)),
            ("the first to go, well behind", (0.05, 0.15, 0.2), (2, 0, 0)),
            ("both have a spin, second ahead", (0.15, 0.25, 0.2), (1, 1, 0)),
            ("three spins, far ahead", (0.0, 0.4, 0.15), (0, 3, 0)),
        )
        for title, parts, earned in shares:
            if sum(earned) <= self.frontier:
                scores = [round(part * cap / self.unit) * self.unit for part in parts]
                words = {"scores": ",".join(map(str, scores))}
                words["earned"] = ",".join(map(str, earned))
                yield title, words


def _negative(name: str, held: Ints) -> Callable[[int, int], str]:
    return lambda x, i: f"{name}: {held[x, i]} is negative; the least is 0"


def _out_with(name: str, held: Ints, most: int) -> Callable[[int, int], str]:
    return lambda x, i: (
        f"{name}: player {i + 1} is out ({most} whammies) and must have 0, not {held[x, i]}"
    )


def _three(name: str, text: str) -> tuple[int, int, int]:
    """Three whole numbers as a person writes them."""
    parts = text.replace("$", "").split(",")
    if len(parts) != 3:
        raise StateError(
            f"{name}: '{text[:60]}' has {len(parts)} values; write one a player: 0,0,0"
        )
    found = []
    for part in parts:
        if not re.fullmatch(r"\s*[+-]?[0-9]{1,9}\s*", part):
            said = part.strip()[:30]
            raise StateError(f"{name}: '{said}' is not a whole number of at most 9 digits")
        found.append(int(part))
    return found[0], found[1], found[2]
