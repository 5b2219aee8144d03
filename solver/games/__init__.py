"""The games, one folder each. A folder says in `GAMES` which are in it (`solver.game.registry`)."""
