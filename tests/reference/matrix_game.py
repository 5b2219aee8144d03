"""Zero-sum matrix games in exact fractions: the textbook simplex under Bland's rule.

Slow and plain; it shares nothing with the solver.
"""

from fractions import Fraction


def solve(a):
    """(value, an optimal lottery over rows, one over columns) of the game a[row][column].

    With all entries made positive: the most of sum y subject to a y <= 1, y >= 0. Row i of the
    full tableau is row i of the game, its slack, and the right side; the last one the costs.
    """
    rows, columns = len(a), len(a[0])
    shift = 1 - min(min(row) for row in a)
    t = [
        [a[i][j] + shift for j in range(columns)]
        + [Fraction(int(i == k)) for k in range(rows)]
        + [Fraction(1)]
        for i in range(rows)
    ]
    costs = [Fraction(1)] * columns + [Fraction(0)] * (rows + 1)
    basis = [columns + i for i in range(rows)]
    while True:
        q = next((j for j in range(columns + rows) if costs[j] > 0), None)
        if q is None:
            break
        p = min(
            (i for i in range(rows) if t[i][q] > 0), key=lambda i: (t[i][-1] / t[i][q], basis[i])
        )
        t[p] = [entry / t[p][q] for entry in t[p]]
        for i in range(rows):
            if i != p and t[i][q]:
                t[i] = [u - t[i][q] * w for u, w in zip(t[i], t[p], strict=True)]
        costs = [u - costs[q] * w for u, w in zip(costs, t[p], strict=True)]
        basis[p] = q
    total = -costs[-1]
    y = [Fraction(0)] * columns
    for i, variable in enumerate(basis):
        if variable < columns:
            y[variable] = t[i][-1] / total
    x = [-cost / total for cost in costs[columns:-1]]
    return 1 / total - shift, x, y


def proves(a, value, x, y):
    """Whether x secures the value for the row player and y for the column player."""
    rows, columns = len(a), len(a[0])
    lotteries = all(min(z) >= 0 and sum(z) == 1 for z in (x, y))
    secured = min(sum(x[i] * a[i][j] for i in range(rows)) for j in range(columns))
    allowed = max(sum(a[i][j] * y[j] for j in range(columns)) for i in range(rows))
    return lotteries and secured == value == allowed
