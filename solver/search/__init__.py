"""Find, order and solve the states below given roots by backward induction, for any game.

Begin with `game_graph`, which solves them in one piece; `stages` cuts them by a level.
"""
