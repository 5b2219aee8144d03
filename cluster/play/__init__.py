"""Agents by name, the payoffs of their profiles, games with a person, and drawings of play."""
