"""Goofspiel, the Game of Pure Strategy: rules, patterns, the layers and their kernel."""
