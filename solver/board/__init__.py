"""Boards: the model of a file, reading one, and which rules it asks for."""
