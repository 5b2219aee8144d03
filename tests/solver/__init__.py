"""Tests of the rules and numerics."""
