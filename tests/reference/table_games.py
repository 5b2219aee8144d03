"""Slow and plain solvers of Can't Stop and Farkle, written from the rules."""

from functools import cache
from itertools import product


def cant_stop(sides, length):  # noqa: C901  # one game
    """The least expected number of turns to complete three columns, alone."""
    columns = range(2, 2 * sides + 1)
    top = {c: length + 2 * min(c - 2, 2 * sides - c) for c in columns}
    throws = list(product(range(1, sides + 1), repeat=4))

    def moved(saved, turn, sums):
        turn = dict(turn)
        before = dict(turn)
        for c in sums:
            if (c in turn or len(turn) < 3) and saved[c - 2] + turn.get(c, 0) < top[c]:
                turn[c] = turn.get(c, 0) + 1
        return tuple(sorted(turn.items())) if turn != before else None

    def of_turn(saved, lost):
        """The turns left at the beginning of a turn if there are `lost` after nothing moves."""

        @cache
        def rolling(turn):
            total = 0.0
            for a, b, c, d in throws:
                splits = [(a + b, c + d), (a + c, b + d), (a + d, b + c)]
                after = {moved(saved, turn, s) for pair in splits for s in (pair, pair[::-1])}
                total += min([choosing(t) for t in after if t] or [lost])
            return total / len(throws)

        @cache
        def choosing(turn):
            after = tuple(s + dict(turn).get(c, 0) for c, s in zip(columns, saved, strict=True))
            return min(turns_left(after), rolling(turn))

        return 1 + rolling(())

    @cache
    def turns_left(saved):
        if sum(s == top[c] for c, s in zip(columns, saved, strict=True)) >= 3:
            return 0.0
        before, now = 0.0, 1.0
        while abs(now - before) > 1e-12:
            before, now = now, of_turn(saved, now)
        return now

    return turns_left((0,) * len(columns))


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
