"""Pig: one die, as often as one dares; a race to a goal, or so many rounds."""
