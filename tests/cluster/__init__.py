"""Tests of the room cluster/."""
