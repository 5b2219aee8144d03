"""The games, one folder each, which says in `GAMES` which are in it (`solver.board.registry`)."""
