"""Press Your Luck beyond the frontier, solved for its decisions alone.

Only two levels of spins, and boundaries, are in memory. The solve takes one whammy vector after
another and goes up through all spins (`tiers.by_whammies`). A tier reads in full only the tier with
one spin less and the same whammies. Of all others it reads the states after a whammy: a score of 0
and no passed spins for the player who was up (`tiers.boundary_of`). With T spins and n scores, a
boundary of slot A has C(T + 4, 4) n^2 states while the tier has C(T + 5, 5) n^3.

Payoffs in memory are float32 if the bound of `Planes.decision_error` holds: if no slide offers a
choice, and no passer chooses between two level rivals. The two passes of such a choice are often
closer than float32 resolution, and the choice changes the other players' payoffs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from luckbase.solver.game.arrays import Best, Floats
from luckbase.solver.game.capabilities import DecisionLayout
from luckbase.solver.game.game import Game
from luckbase.solver.games.press_your_luck import tiers
from luckbase.solver.games.press_your_luck.board import PressYourLuckBoard
from luckbase.solver.games.press_your_luck.full_table import Planes
from luckbase.solver.games.press_your_luck.tiers import PAIR, A, B, C, Tier


class PlaneDecisions(DecisionLayout[Tier]):
    layout: Planes

    def __init__(self, game: Game) -> None:
        assert isinstance(game.board, PressYourLuckBoard)
        self.frontier = game.board.solve.frontier
        self.layout = Planes(game, game.board.depth)
        self.size, self.whammies = self.layout.size, self.layout.whammies
        self.three = self.layout.three
        rules = self.layout.board.rules
        if not self.layout.outcomes.others and (game.players == 2 or rules.tied_pass == "next"):
            self.memory_type = np.float32

    def compile(self) -> None:
        self.layout.compile(self.memory_type)

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
        tier_below = self.below(tier)

        def child(lower: Tier) -> Floats:
            if below is None:
                return tiers.terminal(self.three(lower), self.size).astype(out.dtype, copy=False)
            return below

        def boundary(lower: Tier, slot: int) -> Floats:
            if lower.spins and lower != tier_below:
                return self._pieces(lower, boundaries[lower])[slot]
            three = self.three(lower)
            payoffs = child(lower) if lower.spins else tiers.terminal(three, self.size)
            return tiers.boundary_of(slot, payoffs, lower.spins, three, self.size)

        return self.layout.fill_tier(tier, out, child, boundary, stop, best)

    def decision_error(self, tier: Tier) -> float:
        return self.layout.decision_error(tier) if self.memory_type is np.float32 else 0.0
