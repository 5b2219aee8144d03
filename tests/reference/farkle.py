"""Farkle for two, by value iteration."""

from functools import cache
from itertools import product


def offers(throw):
    """Each (points in fifties, dice left) that a throw offers: ones, fives, three and more."""
    result = set()
    for taken in product((False, True), repeat=len(throw)):
        kept = [die for die, take in zip(throw, taken, strict=True) if take]
        each = []
        for face in set(kept):
            n = kept.count(face)
            three = (20 if face == 1 else 2 * face) * 2 ** max(n - 3, 0)
            each.append(three if n >= 3 else n * {1: 2, 5: 1}.get(face, 0))
        if kept and all(each):
            result.add((sum(each), len(throw) - len(kept)))
    return result


def farkle(goal, dice):
    """The chance to win for the player who begins, by value iteration."""
    throws = {n: [offers(t) for t in product(range(1, 7), repeat=n)] for n in range(1, dice + 1)}

    def of_turn(wins, mine, theirs):
        lost = 1 - wins[theirs, mine]

        @cache
        def rolling(turn, remaining):
            each = [max([choosing(turn + p, n or dice) for p, n in throw] or [lost])
                    for throw in throws[remaining]]  # fmt: skip
            return sum(each) / len(each)

        @cache
        def choosing(turn, remaining):
            if mine + turn >= goal:
                return 1.0
            return max(1 - wins[theirs, mine + turn], rolling(turn, remaining))

        return rolling(0, dice)

    now, off = dict.fromkeys(product(range(goal), repeat=2), 0.5), 1.0
    while off > 1e-12:
        before = dict(now)
        for mine, theirs in now:
            now[mine, theirs] = of_turn(now, mine, theirs)
        off = max(abs(now[at] - before[at]) for at in now)
    return now[0, 0]
