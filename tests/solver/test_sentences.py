"""Values as sentences quote them."""

from __future__ import annotations

from luckbase.solver.sentences import show


def test_numbers_are_quoted_up_to_thirty_digits() -> None:
    """Python refuses to print very long ones."""
    for sign in (1, -1):
        assert show(sign * (10**30 - 1)) == ("-" if sign < 0 else "") + "9" * 30
        assert show(sign * 10**30) == show(sign * 10**5000) == "a number of more than 30 digits"
