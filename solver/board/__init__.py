"""Boards: board files, their model, the rules that they need, and the registry of games."""
