"""Who plays: agents by name, what a profile of them is worth, a person's game, drawings of play."""
