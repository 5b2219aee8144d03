"""Elimination: the answers of fractions, whatever is exchanged; none where there is none."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from luckbase.solver.matrix_game.simplex import eliminate
from tests.reference import linear as reference

EQUATIONS = [[0, 2, 1, 5], [4, -1, 0, 2], [8, 3, -2, 1]]
"""Of three numbers, the right side last; the first row has to go elsewhere."""
ANSWERS = [Fraction(25, 36), Fraction(7, 9), Fraction(31, 9)]


@pytest.mark.parametrize("reciprocal", [False, True])
def test_the_answer_is_that_of_fractions(reciprocal: bool) -> None:
    for *row, right in EQUATIONS:
        assert sum(a * x for a, x in zip(row, ANSWERS, strict=True)) == right
    t = np.full((5, 6), np.nan)  # larger than the equations
    t[:3, :4] = EQUATIONS
    t[:3, 4] = 2 * t[:3, 3]
    assert eliminate(t, 3, 2, 1e-14, reciprocal)
    assert t[:3, 3] == pytest.approx([float(x) for x in ANSWERS], abs=1e-15)
    assert t[:3, 4] == pytest.approx([2 * float(x) for x in ANSWERS], abs=1e-15)


def test_equations_without_one_answer_are_told_apart() -> None:
    twice = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])
    assert not eliminate(twice.copy(), 2, 1, 1e-14, False)
    assert eliminate(twice, 2, 1, 0.0, True)
    assert not np.isfinite(twice[:, 2]).all()


def test_what_is_left_of_a_pivot_is_either_way_a_rounding_apart() -> None:
    """Both kinds are kept: tables of each were solved so."""
    t = np.array([[3.0, 1.0, 1.0], [1.0, 5.0, 7.0]])
    answers = []
    for reciprocal in (False, True):
        mine = t.copy()
        assert eliminate(mine, 2, 1, 1e-14, reciprocal)
        answers.append(mine[:, 2])
    assert answers[0] == pytest.approx(answers[1], abs=1e-15)


def test_the_reference_exchanges_rows() -> None:
    """The judge of the others: the first pivot is not in the first row."""
    rows = [[Fraction(x) for x in row] for row in ([0, 2, 1, 7], [1, 1, 0, 3], [0, 0, 4, 12])]
    assert reference.solve(rows) == [1, 2, 3]
