"""Charts as data."""
