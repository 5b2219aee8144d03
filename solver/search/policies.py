"""The value of a component by policy iteration, with proved bounds.

Player 0 maximises and player 1 minimises the payoff to player 0. A component takes five steps:

1. **A first policy** under which the play ends: each state takes an action that may lead to a state
   from which it ends. If possible, player 0's part ends the play for any actions of player 1.
2. **Sweeps** (Gauss and Seidel) change its actions until they stay the same. If the play then never
   ends, the policy of step 1 is kept.
3. **Policy iteration** (Howard). `solver.search.elimination` evaluates each policy to about 31
   digits. An action is changed only if its gain exceeds the error of the values, so every change is
   a true improvement and nothing cycles. Player 1's best reply is found before player 0 changes an
   action (Hoffman and Karp), because improving both at once may cycle for ever.
4. **Certificate.** Let player 1 keep their policy. The value is at most v + eps w if gain + margin
   + eps (mean of w - own w) <= 0 at each state for each remaining action. w is the greatest
   expected number of steps over the actions that are tied with the best. Clearly worse actions need
   not end the play; they are checked one by one. The bound below is the same with the players
   exchanged. margin covers the rounding of the sum and of each chance.
5. **Plays without an end.** A play that never ends pays minus infinity to a player who pays for
   every round and could end it (Bertsekas and Tsitsiklis); steps 2 to 4 allow for it. Three cases
   are refused: tied actions that never end (a cycle for free), an improvement that never ends (a
   cycle that pays), and no way out.

If the factors of a component would fill up (`LARGEST` and `MOST_WORK`), it is swept instead:
Gauss-Seidel sweeps in the order of elimination, with extrapolation and the same certificate, its
steps also found by sweeps.

Sources: Howard, Dynamic Programming and Markov Processes (1960); Hoffman and Karp, On
nonterminating stochastic games (1966); Bertsekas and Tsitsiklis, An analysis of stochastic shortest
path problems (1991); Condon, The complexity of stochastic games (1992).
"""

from __future__ import annotations

import numpy as np

from luckbase.solver.compiled import njit, types
from luckbase.solver.search.bellman import U
from luckbase.solver.search.elimination import (
    ENDLESS,
    ROOM,
    SOLVED,
    STEPS,
    VALUE,
    VIEW,
    arrange,
    back_substitute,
    copy,
    evaluate,
    factor,
    factors_for,
    fill,
    gain,
    part,
    quick_gain,
    work_for,
)

FREE, PAYS, NO_EXIT, SLOW = 3, 4, 5, 6
"""Why a component is refused: a free cycle, a paying cycle, no way out, bounds that stay apart."""
MAX_POLICIES, MAX_SWEEPS = 2000, 20_000
LARGE, LARGEST, MOST_WORK = 150_000, 1 << 22, 500_000_000
"""LARGE: with more states, a component is eliminated only if few entries arise. LARGEST: the most
entries of a factor. MOST_WORK: the most multiplications for one policy, half a second."""
LEAP = 8
"""Sweeps from one extrapolation to the next."""


@part
def _leads_on(g, a, seen):
    """Return whether an outcome of action a leads outside or to a state that was seen."""
    for e in range(g.first[a], g.first[a + 1]):
        y = g.children[e]
        if y < 0 or seen[y]:
            return True
    return False


@part
def first_policy(g, k, keep):
    """Write a policy that ends to k.chosen; return the number of states that cannot end.

    keep: whether player 0's part of k.chosen stays unchanged.
    """
    n = left = g.actors.size
    fill(k.seen, 0)
    for turn in range(2):  # at first without player 1's help
        changed, forward = True, True
        while changed and left:
            changed = False
            for i in range(n):
                x = i if forward else n - 1 - i
                if k.seen[x]:
                    continue
                first, last = g.action_first[x], g.action_first[x + 1]
                if keep and g.actors[x] == 0:
                    first, last = k.chosen[x], k.chosen[x] + 1
                good, pick = 0, -1
                for a in range(first, last):
                    if _leads_on(g, a, k.seen):
                        good, pick = good + 1, a if pick < 0 else pick
                if good >= (last - first if turn == 0 and g.actors[x] == 1 else 1):
                    k.seen[x], k.chosen[x], changed, left = 1, pick, True, left - 1
            forward = not forward
    return left


@part
def _improve(g, k, player, tolerance):
    """Let one player take better actions; return the number of changed states."""
    sign, changed = 1.0 if player == 0 else -1.0, 0
    for x in range(g.actors.size):
        if g.actors[x] != player or g.action_first[x + 1] - g.action_first[x] < 2:
            continue
        best, most = k.chosen[x], 0.0
        own = gain(g, best, x, k.hi, k.lo, VALUE)[0]
        for a in range(g.action_first[x], g.action_first[x + 1]):
            if a != k.chosen[x]:
                q, margin, _, _ = gain(g, a, x, k.hi, k.lo, VALUE)
                q = sign * (q - own) - 4 * margin
                if q > tolerance and q > most:
                    best, most = a, q
        if best != k.chosen[x]:
            k.chosen[x] = best
            changed += 1
    return changed


@part
def _sweep(g, k):
    """Run one Gauss-Seidel sweep over k.hi that takes the best actions.

    Returns the number of changed actions and the largest change of a value.
    """
    changed, moved = 0, 0.0
    for i in range(g.actors.size):
        x = k.order[i]
        sign, best, most = -1.0 if g.actors[x] == 1 else 1.0, -1, 0.0
        for a in range(g.action_first[x], g.action_first[x + 1]):
            q = sign * quick_gain(g, a, x, k.hi)
            if best < 0 or q > most + (1e-15 * abs(k.hi[x]) if best == k.chosen[x] else 0.0):
                best, most = a, q
        changed += best != k.chosen[x]
        k.chosen[x] = best
        k.hi[x] += sign * most
        moved = max(moved, abs(most))
    return changed, moved


@part
def _largest(values):
    """Return the largest absolute value."""
    largest = 0.0
    for i in range(values.size):
        largest = max(largest, abs(values[i]))
    return largest


@part
def _outcome_scale(g):
    scale = 0.0
    for e in range(g.weights.size):
        scale = max(scale, abs(g.rewards[e]) + abs(g.worths[e]))
    return scale


@part
def _sweep_on(g, k):
    """Continue sweeps from k.hi until the values stop changing in float64; return SOLVED or SLOW.

    Errors shrink by nearly the same factor with each sweep, so every `LEAP` sweeps a value is
    extrapolated to its limit at that rate (Aitken). If the rate was wrong, later sweeps correct it,
    and the certificate decides.
    """
    fill(k.lo, 0.0)
    least, quiet, last, outcome_scale = np.inf, 0, 0.0, _outcome_scale(g)
    for count in range(MAX_SWEEPS):
        leaps = count % LEAP == LEAP - 1
        if leaps:
            copy(k.hi, k.b)
        _, moved = _sweep(g, k)
        quiet = quiet + 1 if moved >= least else 0
        least = min(least, moved)
        still = U * max(outcome_scale, _largest(k.hi))
        if moved <= 4 * still or (quiet > 4 * LEAP and moved <= 64 * still):
            return SOLVED
        if leaps and moved < 0.99 * last:
            for x in range(g.actors.size):
                k.hi[x] += (k.hi[x] - k.b[x]) * moved / (last - moved)
        last = moved
    return SLOW


@part
def peel(g, k, allowed):
    """Mark in k.seen the states in which allowed actions can continue a play for ever.

    Writes such actions to k.slow; returns the number of states.
    """
    n = left = g.actors.size
    fill(k.seen, 1)
    changed, forward = True, True
    while changed and left:
        changed = False
        for i in range(n):
            x = i if forward else n - 1 - i
            if not k.seen[x]:
                continue
            stays = False
            for a in range(g.action_first[x], g.action_first[x + 1]):
                if stays or not allowed[a]:
                    continue
                stays = True
                for e in range(g.first[a], g.first[a + 1]):
                    y = g.children[e]
                    stays = stays and y >= 0 and k.seen[max(y, 0)] == 1
                if stays:
                    k.slow[x] = a
            if not stays:
                k.seen[x], changed, left = 0, True, left - 1
        forward = not forward
    return left


@part
def _mark_endless(g, k, policy):
    """Mark in k.seen the states in which a policy continues the play for ever."""
    only = np.empty(g.first.size - 1, np.bool_)
    fill(only, False)
    for x in range(g.actors.size):
        only[policy[x]] = True
    peel(g, k, only)


# --- the certificate ----------------------------------------------------------------------------


@part
def _longest(g, k, f, allowed, ties, swept):
    """Write the greatest expected steps over allowed actions to k.w_hi, k.w_lo.

    Returns SOLVED, FREE, ROOM or SLOW.
    """
    if swept:
        return _longest_by_sweeps(g, k, allowed)
    copy(k.chosen, k.slow)
    for _ in range(MAX_POLICIES):
        got = factor(g, k, k.slow, f, MOST_WORK)
        if got == ENDLESS:
            _mark_endless(g, k, k.slow)
            return FREE
        if got != SOLVED:
            return got
        evaluate(g, k, k.slow, f, STEPS, k.w_hi, k.w_lo)
        slower = 0
        for x in range(g.actors.size if ties else 0):
            most = 1e-3
            for a in range(g.action_first[x], g.action_first[x + 1]):
                if allowed[a] and a != k.slow[x]:
                    q = gain(g, a, x, k.w_hi, k.w_lo, STEPS)[0]
                    if q > most:
                        k.slow[x], most, slower = a, q, slower + 1
        if not slower:
            return SOLVED
    return SLOW


@part
def _longest_by_sweeps(g, k, allowed):
    if peel(g, k, allowed):
        return FREE
    fill(k.w_hi, 1.0)
    fill(k.w_lo, 0.0)
    for _ in range(MAX_SWEEPS):
        moved = 0.0
        for i in range(g.actors.size):
            x, longest = k.order[i], 0.0
            for a in range(g.action_first[x], g.action_first[x + 1]):
                if not allowed[a]:
                    continue
                steps = total = 0.0
                for e in range(g.first[a], g.first[a + 1]):
                    total += g.weights[e]
                    if g.children[e] >= 0:
                        steps += g.weights[e] * k.w_hi[g.children[e]]
                longest = max(longest, steps / total)
            moved = max(moved, 1 + longest - k.w_hi[x])
            k.w_hi[x] = 1 + longest
        if moved <= 0.5:  # then the slack of the certificate is about 1/2 or more
            return SOLVED
    return SLOW


@part
def certify(  # noqa: C901  # one proof, from top to bottom
    g, k, f, chance_error, gains, margins, allowed, swept
):
    """Write error bounds of the values to k.below and k.above; return SOLVED, FREE, ROOM or SLOW.

    Step 4 of the module docstring.

    chance_error: the relative error of each chance.
    gains, margins: float64 (k,), scratch.
    allowed: bool (k,), scratch.
    swept: whether steps are found by sweeps.
    """
    n = g.actors.size
    for x in range(n):
        for a in range(g.action_first[x], g.action_first[x + 1]):
            q, rounding, moved, total = gain(g, a, x, k.hi, k.lo, VALUE)
            margins[a] = (rounding + chance_error * moved * 1.01) / total
            gains[a] = q / total
    known = False  # whether the steps are the policy's own, valid for both sides
    for side in range(2):  # 0: below, player 1 is free; 1: above, player 0 is free
        sign, free, ties = (-1.0, 1, 0) if side == 0 else (1.0, 0, 0)
        for x in range(n):
            for a in range(g.action_first[x], g.action_first[x + 1]):
                near = g.actors[x] == free and -sign * gains[a] <= 8 * margins[a]
                allowed[a] = near or a == k.chosen[x]
                ties += near and a != k.chosen[x]
        eps, added = 0.0, 1
        while added:
            if not (known and not ties):
                got = _longest(g, k, f, allowed, ties, swept)
                if got != SOLVED:
                    return got
            known = not ties
            eps = _residual(g, k, chance_error, gains, margins, allowed, sign)
            if eps < 0.0:
                return SLOW
            added = 0
            for x in range(n):
                for a in range(g.action_first[x], g.action_first[x + 1]):
                    if g.actors[x] == free and not allowed[a]:  # clearly worse: check it directly
                        q, rounding, moved, total = gain(g, a, x, k.w_hi, k.w_lo, STEPS)
                        growth = (q + rounding + chance_error * moved * 1.01) / total - 1.0
                        growth = max(0.0, growth) * (1 + 1e-9)
                        if sign * gains[a] + margins[a] + eps * growth > 0.0:
                            allowed[a] = True
                            added, ties = added + 1, ties + 1
        bounds = k.below if side == 0 else k.above
        for x in range(n):
            bounds[x] = eps * k.w_hi[x] * (1 + 1e-9)
    return SOLVED


@part
def _residual(g, k, chance_error, gains, margins, allowed, sign):
    """Return the eps of the certificate over allowed actions, or -1 if the steps prove nothing."""
    slack, eps = np.inf, 0.0
    for x in range(g.actors.size):
        for a in range(g.action_first[x], g.action_first[x + 1]):
            if allowed[a]:
                q, rounding, moved, total = gain(g, a, x, k.w_hi, k.w_lo, STEPS)
                slack = min(slack, (total - q - rounding - chance_error * moved * 1.01) / total)
                eps = max(eps, sign * gains[a] + margins[a])
    return eps * (1 + 1e-9) / slack if slack > 0.0 else -1.0


# --- the engine ---------------------------------------------------------------------------------


@part
def _iterate(g, k, f):
    """Run policy iteration (steps 1 to 3) from a k.chosen that ends; return a status."""
    who, swept, quiet = -1, True, 0
    copy(k.chosen, k.before)
    fill(k.hi, 0.0)
    for _ in range(100):  # sweep until no action changes in four sweeps
        quiet = 0 if _sweep(g, k)[0] else quiet + 1
        if quiet == 4:
            break
    for _ in range(MAX_POLICIES):
        got = factor(g, k, k.chosen, f, MOST_WORK)
        if got == ENDLESS and swept:  # the sweeps led to a policy that never ends
            copy(k.before, k.chosen)
            swept = False
            continue
        swept = False
        if got == ENDLESS and who == 0:  # player 1's old reply may no longer end the play
            copy(k.chosen, k.slow)
            if not first_policy(g, k, True):
                who = -1
                continue
            copy(k.slow, k.chosen)
        if got == ENDLESS:
            _mark_endless(g, k, k.chosen)
            return PAYS
        if got != SOLVED:
            return got
        residual = evaluate(g, k, k.chosen, f, VALUE, k.hi, k.lo)
        fill(k.b, 1.0)
        back_substitute(g, k, f)
        tolerance = 4 * residual * _largest(k.b)
        who = 1 if _improve(g, k, 1, tolerance) else 0 if _improve(g, k, 0, tolerance) else -1
        if who < 0:
            return SOLVED
    return SLOW


@part
def _eliminate(g, k, chance_error, gains, margins, allowed):
    """Solve and certify by elimination, with more room until the limit; return a status."""
    n = g.actors.size
    room, got = 8 * n + 64, ROOM
    while got == ROOM and room <= max(LARGEST, 8 * n + 64):
        f = factors_for(room)
        if first_policy(g, k, False):
            for x in range(n):  # mark states that cannot end
                k.seen[x] = not k.seen[x]
                k.slow[x] = g.action_first[x]
            return NO_EXIT
        got = _iterate(g, k, f)
        if got == SOLVED:
            got = certify(g, k, f, chance_error, gains, margins, allowed, False)
        if n > LARGE:
            break
        room *= 4
    return got


@njit(types.int64(VIEW, types.int64[::1]), error_model="numpy")
def endless(g, cycle):
    """Return the number of states in which some actions can continue a play for ever, and write
    these actions to `cycle`, -1 elsewhere."""
    k, allowed = work_for(g.actors.size), np.empty(g.first.size - 1, np.bool_)
    fill(allowed, True)
    count = peel(g, k, allowed)
    for x in range(g.actors.size):
        cycle[x] = k.slow[x] if k.seen[x] else -1
    return count


_SOLVE_VIEW = types.int64(
    VIEW, types.float64, types.float64[::1], types.float64[::1], types.int64[::1]
)


@njit(_SOLVE_VIEW, error_model="numpy")
def solve_view(g, chance_error, values, errors, cycle):
    """Solve a component as one player sees it; return a status.

    chance_error: the relative error of each chance that the bounds cover.
    values, errors: float64 (n,), written.
    cycle: int64 (n,), written: the actions of a refused cycle, -1 elsewhere; or the policy if none
        is refused.
    """
    n = g.actors.size
    k, actions = work_for(n), g.first.size - 1
    gains, margins, allowed = np.empty(actions), np.empty(actions), np.empty(actions, np.bool_)
    arrange(g, k)
    got = _eliminate(g, k, chance_error, gains, margins, allowed)
    if got == ROOM:
        got = _sweep_on(g, k)
        if got == SOLVED:
            got = certify(g, k, factors_for(0), chance_error, gains, margins, allowed, True)
    for x in range(n):
        low = k.lo[x]
        values[x] = k.hi[x]
        # The value is between hi + lo - below and hi + lo + above; all roundings go upwards.
        off = max(k.below[x] - low, k.above[x] + low) + 2 * U * abs(low)
        errors[x] = off * (1 + 4 * U) + 5e-324
        cycle[x] = k.chosen[x] if got == SOLVED else k.slow[x] if k.seen[x] else -1
    return got
