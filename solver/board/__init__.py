"""Boards: the model of a file, reading one, which rules it asks for; the games by name."""
