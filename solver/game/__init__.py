"""Games: the contract that each game fulfils, and everything that follows from it for any game.

Authors of games find everything on one page, `luckbase.game`.
"""
