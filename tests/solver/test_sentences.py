"""Values as sentences quote them."""

from hypothesis import given
from hypothesis import strategies as st

from luckbase.solver.sentences import show, within


def test_numbers_are_quoted_up_to_thirty_digits():
    """Python refuses to print very long ones."""
    for sign in (1, -1):
        assert show(sign * (10**30 - 1)) == ("-" if sign < 0 else "") + "9" * 30
        assert show(sign * 10**30) == show(sign * 10**5000) == "a number of more than 30 digits"


@given(st.floats(1e-300, 1e6))
def test_a_bound_is_printed_rounded_up(error):
    text = float(within(error).removeprefix("within "))
    assert error * (1 - 1e-8) <= text <= 1.1 * error, "a tenth above at most, never below"
    assert within(text) == f"within {text:.1e}"


def test_what_is_not_off_is_exact():
    assert within(0.0) == "exact"
    assert within(3e-8, "each ") == "each within 3.0e-08"
