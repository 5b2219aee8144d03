"""Wild, a made-up game for each seed: what a state leads to hangs on its numbers and the seed.

Turns are counted down. The board says how many players there are, whether edges pay, whether two
choose at once, whether chance may leave the turns as they are (a cycle that ends), and of what
kinds the other fields are.
"""

from luckbase.game import Board, Field, Names, Rules, Section, option, pay, register, set_field
from luckbase.solver.game.rules import JOINT, chance, decision, lead, over, simultaneous, transition

MOST = 64
KINDS = (
    [Field("a", high=6), Field("b", high=3)],
    [Field("cold", low=-7, high=5), Field("b", high=1)],
    [Field("money", high=500, unit=100)],
    [Field("steps", length=2, high=3)],
    [set_field("tiles", 4, default=0)],
    [set_field("cards", 40, default=0)],
    [Field("sky", high=2, names=Names(["sun", "rain", "NA"])), Field("x", high=4)],
    [Field("large", high=999_999_999), Field("c", high=2)],
    [Field("low", low=-500, high=500, unit=250), Field("y", length=2, high=1)],
    [Field("dice", length=2, low=1, high=3, blank=0, default=0)],
    [Field("n", as_list=True, high=5), Field("below", low=-3, high=-1, default=-1)],
    [Field("r", high=999_999_999), Field("s", high=999_999), Field("w", high=1, names=Names("10"))],
    [Field("one", high=0), Field("five", low=5, high=9, default=5)],
)


class Options(Section):
    seed: int = option(0, 0, 1 << 30)
    players: int = option(2, 1, 3)
    kind: int = option(0, 0, len(KINDS) - 1)
    turns: int = option(4, 1, 12)
    pays: bool = option(False)
    at_once: bool = option(False)
    cycles: bool = option(False)


class WildBoard(Board):
    rules: Options = Options()


@transition
def wild(board, state, edges):  # noqa: C901  # one function, as rules are
    """The state: the turns left, then the other fields. The board: seed, players, pays, at_once,
    cycles, then the least and the greatest number of each field."""
    seed, players, pays, at_once, cycles = board.ints[:5]
    h = seed
    for i in range(state.size):
        h = (h * 1103515245 + state[i] * 7919 + 12345 + i) % 2147483648
    h = (h // 7 * 69069 + 5) % 2147483648
    if state[0] == 0 or h // 64 % 11 == 0:
        first = (h // 1024 % 33 - 16) / 8
        if players == 1:
            return over(edges, first)
        if players == 2:
            return over(edges, first, 1 - first)
        return over(edges, first, (h // 65536 % 33 - 16) / 8, (h // 8192 % 9 - 4) / 4)
    what = h // 128 % 10
    rows, columns = 1 + h // 4096 % 3, 1 + h // 16384 % 3
    both = what in (3, 4, 5) and at_once
    groups = 1 if what < 3 else rows * columns if both else 1 + h // 2048 % 3
    for g in range(groups):
        action = 5 if what < 3 else g // columns * JOINT + g % columns if both else g
        k = (h * 31 + g * 1009 + 7) % 2147483648
        count = 1 + k // 256 % 3 + (what < 3)
        total = 0
        for o in range(count):
            total += 1 + k // (8 << o) % 4
        for o in range(count):
            child = lead(edges, state, action, (1 + k // (8 << o) % 4) / total)
            q = (k * 48271 + o * 97 + 11) % 2147483647
            stays = cycles and what < 3 and o > 0 and q // 64 % 4 == 0
            child[0] -= 0 if stays else min(state[0], 1 + q // 32 % 2)
            for i in range(1, state.size):
                low, high, m = board.ints[5 + 2 * i], board.ints[6 + 2 * i], q // (4 << i) % 5
                if m == 0:
                    child[i] = low + q // 7 % (high - low + 1)
                elif m < 3:
                    child[i] = min(high, max(low, state[i] + 3 - 2 * m))
            if pays:
                paid = (q // 1024 % 9 - 4) / 16
                if players == 1:
                    pay(edges, paid)
                else:
                    pay(edges, paid, -paid)
    if what < 3:
        return chance(edges)
    return simultaneous(edges) if both else decision(edges, h // 512 % players)


def rules(board):
    options = board.rules
    fields = [Field("turn", high=options.turns, default=options.turns), *KINDS[options.kind]]
    at_once = options.at_once and options.players == 2
    numbers = [options.seed, options.players, options.pays, at_once, options.cycles]
    for field in fields:
        numbers += field.bounds * field.length
    most = 6 + options.turns
    return Rules(
        fields=fields, players=options.players, transition=wild, numbers=list(map(int, numbers)),
        max_edges=MOST, actions=lambda action: f"a{action}", start={}, pays=options.pays,
        payoff_range=(-most, most), simultaneous=at_once,
    )  # fmt: skip


register("wild", WildBoard, rules)
