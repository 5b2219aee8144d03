"""The value of one policy on a component, by elimination without subtraction.

A policy turns the n states of a component into linear equations: the value of a state is the mean,
over the outcomes of its action, of the reward plus the value of the child. States are eliminated
one after another (Grassmann, Taksar and Heyman). The chance to leave a state is computed as the sum
of the chances of its exits, not as 1 minus the chance to stay. So nothing is subtracted, and an
exit as rare as 1e-14 keeps all its digits. A sum of 0 means that the policy never ends: an exact
test.

* **Order.** States are eliminated in the order in which a depth-first search leaves them. The
  remaining entries of a row are then states that the search was still in. In games whose scores
  only grow these are few, and the work is nearly proportional to the number of outcomes.
* **Refinement.** Residuals are computed in pairs of doubles, value = hi + lo, with 31 digits, and
  the same factors solve for the corrections.
* **Differences.** Every equation is written as sum of p (reward + value of the child - own value).
  This divides the chances by their sum, cancels outcomes that lead back to the state itself, and
  makes the error from a chance proportional to a difference.

Sources: Grassmann, Taksar and Heyman, Regenerative analysis and steady state distributions (1985);
Dekker, A floating-point technique for extending the available precision (1971).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from luckbase.solver.compiled import jitable, tuple_type, types
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.search.bellman import U

FINE = 2.0**-103
"""The relative error of one operation on pairs of doubles, with room to spare (2 ** -105)."""
SOLVED, ENDLESS, ROOM = 0, 1, 2
"""The results of `factor`: done; the policy never ends; the factors need more room."""
VALUE, STEPS = 0, 1
"""The unknown of an equation: the payoff, or the number of steps to the end."""


part = jitable(error_model="numpy")
"""The decorator for functions that only compiled functions call."""


class View(NamedTuple):
    """A component as one player sees it: n states, k actions, m outcomes."""

    action_first: Ints  # (n + 1,), where the actions of each state begin
    first: Ints  # (k + 1,), where the outcomes of each action begin
    weights: Floats  # (m,), above 0
    children: Ints  # (m,), a state from 0, or below 0 for a child outside
    rewards: Floats  # (m,)
    worths: Floats  # (m,), the value of a child outside, else 0
    actors: Ints  # (n,), 0 maximises, 1 minimises


VIEW = tuple_type(
    View, types.int64[::1], types.int64[::1], types.float64[::1], types.int64[::1],
    types.float64[::1], types.float64[::1], types.int64[::1],
)  # fmt: skip


class Work(NamedTuple):
    """Scratch for n states. A position is a place in the order of elimination."""

    order: Ints  # the state at each position
    place: Ints  # the position of each state
    stack: Ints  # for searches, like the next two
    cursor: Ints
    seen: Ints
    chosen: Ints  # policies, by the number of the action, like the next two
    before: Ints
    slow: Ints
    hi: Floats  # the values
    lo: Floats
    w_hi: Floats  # the steps
    w_lo: Floats
    b: Floats  # a right-hand side, by position
    row: Floats  # a row during elimination
    out: Floats  # the chance to leave the component, after eliminating earlier states
    pivot: Floats  # the same to leave the state
    lower: Ints  # (n + 1,), where the rows of the factors begin
    upper: Ints
    below: Floats  # error bounds
    above: Floats


class Factors(NamedTuple):
    """Sparse rows of the two factors: columns, int64, and entries, float64."""

    l_columns: Ints
    l_entries: Floats
    u_columns: Ints
    u_entries: Floats


@part
def work_for(n):
    return Work(
        _ints(n), _ints(n), _ints(n), _ints(n), _ints(n), _ints(n), _ints(n), _ints(n), _floats(n),
        _floats(n), _floats(n), _floats(n), _floats(n), _floats(n), _floats(n), _floats(n),
        _ints(n + 1), _ints(n + 1), _floats(n), _floats(n),
    )  # fmt: skip


@part
def _ints(n):
    return np.empty(n, np.int64)


@part
def _floats(n):
    return np.empty(n)


@part
def fill(array, value):
    """Set every element, in a loop: numba takes seconds to compile an assignment to a slice."""
    for i in range(array.size):
        array[i] = value


@part
def copy(values, out):
    """Copy values (n,) to out (n,), in a loop for the same reason as `fill`."""
    for i in range(out.size):
        out[i] = values[i]


@part
def factors_for(room):
    return Factors(_ints(room), _floats(room), _ints(room), _floats(room))


# --- pairs of doubles ---------------------------------------------------------------------------


@part
def two_sum(a, b):
    """Return the rounded sum and its error, which add up to a + b (Dekker)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@part
def two_product(a, b):
    """Return the rounded product and its error, which add up to a b (Dekker)."""
    product = a * b
    t = 134217729.0 * a
    a_high = t - (t - a)
    t = 134217729.0 * b
    b_high = t - (t - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@part
def gain(g, a, x, hi, lo, kind):
    """Return the gain of action a over the value of state x: sum of p (reward + child - own value).

    Also returns a bound on its rounding, the sum of p |difference|, and the sum of p.
    """
    own_hi, own_lo = hi[x], lo[x]
    s_hi = s_lo = size = moved = total = 0.0
    for e in range(g.first[a], g.first[a + 1]):
        p, y = g.weights[e], g.children[e]
        paid = 1.0 if kind == STEPS else g.rewards[e]
        c_hi = c_lo = 0.0
        if y >= 0:
            c_hi, c_lo = hi[y], lo[y]
        elif kind == VALUE:
            c_hi = g.worths[e]
        d_hi, d_lo = two_sum(c_hi, -own_hi)
        d_hi, more = two_sum(d_hi, paid)
        d_hi, d_lo = two_sum(d_hi, d_lo + more + (c_lo - own_lo))
        t_hi, t_lo = two_product(p, d_hi)
        s_hi, more = two_sum(s_hi, t_hi)
        s_lo += more + (t_lo + p * d_lo)
        size += p * (abs(c_hi) + abs(own_hi) + abs(paid))
        moved += p * abs(d_hi)
        total += p
    s = s_hi + s_lo
    rounding = (g.first[a + 1] - g.first[a] + 8) * FINE * size + 2 * U * abs(s)
    return s, rounding, moved, total


@part
def quick_gain(g, a, x, values):
    """Return the sum of `gain` in float64."""
    s, own = 0.0, values[x]
    for e in range(g.first[a], g.first[a + 1]):
        y = g.children[e]
        s += g.weights[e] * (g.rewards[e] + ((values[y] if y >= 0 else g.worths[e]) - own))
    return s


# --- elimination --------------------------------------------------------------------------------


@part
def arrange(g, k):
    """Write the order in which a depth-first search leaves the states."""
    n, count = g.actors.size, 0
    fill(k.seen, 0)
    for root in range(n):
        if k.seen[root]:
            continue
        top = 0
        k.stack[0], k.seen[root], k.cursor[root] = root, 1, g.first[g.action_first[root]]
        while top >= 0:
            x = k.stack[top]
            if k.cursor[x] == g.first[g.action_first[x + 1]]:
                k.order[count], k.place[x] = x, count
                count, top = count + 1, top - 1
                continue
            y = g.children[k.cursor[x]]
            k.cursor[x] += 1
            if y >= 0 and not k.seen[y]:
                top += 1
                k.stack[top], k.seen[y], k.cursor[y] = y, 1, g.first[g.action_first[y]]


@part
def _push(heap, count, item):
    while count > 0 and heap[(count - 1) // 2] > item:
        heap[count] = heap[(count - 1) // 2]
        count = (count - 1) // 2
    heap[count] = item


@part
def _pop(heap, count):
    least, item, at = heap[0], heap[count - 1], 0
    while 2 * at + 1 < count - 1:
        child = 2 * at + 1
        if child + 1 < count - 1 and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= item:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = item
    return least


@part
def factor(g, k, policy, f, most):  # noqa: C901  # one pass over the rows
    """Eliminate the states of a policy in order; return SOLVED, ENDLESS, or ROOM.

    most: the most multiplications; beyond it ROOM is returned.
    """
    n, l_count, u_count, spent = g.actors.size, 0, 0, 0
    fill(k.row, 0.0)
    for i in range(n):
        k.lower[i], k.upper[i] = l_count, u_count
        out, waiting, touched = 0.0, 0, 0
        a = policy[k.order[i]]
        for e in range(g.first[a], g.first[a + 1]):
            if g.children[e] < 0:
                out += g.weights[e]
                continue
            j = k.place[g.children[e]]
            if k.row[j] == 0.0:
                k.stack[touched] = j
                touched += 1
                if j < i:
                    _push(k.cursor, waiting, j)
                    waiting += 1
            k.row[j] += g.weights[e]
        if l_count + n > f.l_columns.size or u_count + n > f.u_columns.size or spent > most:
            return ROOM
        while waiting:  # replace an eliminated state by its own outcomes
            j = _pop(k.cursor, waiting)
            waiting -= 1
            share = k.row[j] / k.pivot[j]
            f.l_columns[l_count], f.l_entries[l_count] = j, share
            l_count += 1
            out += share * k.out[j]
            spent += k.upper[j + 1] - k.upper[j]
            for t in range(k.upper[j], k.upper[j + 1]):
                m, more = f.u_columns[t], share * f.u_entries[t]
                if k.row[m] == 0.0 and more > 0.0:
                    k.stack[touched] = m
                    touched += 1
                    if m < i:
                        _push(k.cursor, waiting, m)
                        waiting += 1
                k.row[m] += more
        pivot = out
        for t in range(touched):
            j = k.stack[t]
            if j > i and k.row[j] > 0.0:
                f.u_columns[u_count], f.u_entries[u_count] = j, k.row[j]
                u_count += 1
                pivot += k.row[j]
            k.row[j] = 0.0
        if pivot == 0.0:
            return ENDLESS
        k.pivot[i], k.out[i] = pivot, out
        k.lower[i + 1], k.upper[i + 1] = l_count, u_count
    return SOLVED


@part
def back_substitute(g, k, f):
    """Solve for the right-hand side k.b, in place."""
    n, b = g.actors.size, k.b
    for i in range(n):
        s = b[i]
        for t in range(k.lower[i], k.lower[i + 1]):
            s += f.l_entries[t] * b[f.l_columns[t]]
        b[i] = s
    for i in range(n - 1, -1, -1):
        s = b[i]
        for t in range(k.upper[i], k.upper[i + 1]):
            s += f.u_entries[t] * b[f.u_columns[t]]
        b[i] = s / k.pivot[i]


@part
def evaluate(g, k, policy, f, kind, hi, lo):
    """Write the values, or steps, of the factored policy; return the largest residual.

    They are refined in pairs of doubles until the residuals are only rounding.
    """
    worst = np.inf
    for turn in range(60):
        largest, enough = 0.0, True
        for i in range(g.actors.size):
            x = k.order[i]
            a = policy[x]
            if turn > 0:
                r, margin, _, _ = gain(g, a, x, hi, lo, kind)
                largest, enough = max(largest, abs(r)), enough and abs(r) <= margin / 4
            else:
                r = 0.0
                for e in range(g.first[a], g.first[a + 1]):
                    r += g.weights[e] * (1.0 if kind == STEPS else g.rewards[e] + g.worths[e])
                hi[x] = lo[x] = 0.0
            k.b[i] = r
        if turn > 0 and (enough or largest > worst / 2):
            return min(worst, largest)
        if turn > 0:
            worst = largest
        back_substitute(g, k, f)
        for i in range(g.actors.size):
            x = k.order[i]
            s, low = two_sum(hi[x], k.b[i])
            hi[x], lo[x] = two_sum(s, low + lo[x])
    return worst
