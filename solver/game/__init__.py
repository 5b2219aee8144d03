"""A game: what it gives (`rules`, `tiered`), and what its tables hold."""
