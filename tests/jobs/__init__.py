"""Tests of what a person runs."""
