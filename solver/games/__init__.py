"""The games, one folder each; each folder lists its games in `GAMES` (`solver.board.registry`)."""
