"""Solve and maintain many boards in one call."""
