"""Linear equations, in fractions or floats."""


def solve(rows):
    """The solution of n equations: a tuple of each unknown's values, one for each column beyond
    the square of coefficients. Gauss-Jordan elimination with the largest pivot; `rows` is modified
    in place. Raises ZeroDivisionError if fractions have no solution or several."""
    n = len(rows)
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in range(n):
            if k != i and rows[k][i]:
                factor = rows[k][i]
                rows[k] = [x - factor * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [tuple(row[n:]) for row in rows]
