"""Linear equations in fractions, by Gauss-Jordan elimination."""


def solve(rows):
    """The solution (n,) of n equations: rows of n coefficients and the right side; `rows` is
    modified in place. Raises StopIteration where there is not exactly one."""
    n = len(rows)
    for i in range(n):
        at = next(k for k in range(i, n) if rows[k][i])
        rows[i], rows[at] = rows[at], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in range(n):
            if k != i and rows[k][i]:
                factor = rows[k][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [row[n] for row in rows]
