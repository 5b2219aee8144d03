"""A game: what it gives, and what follows from that for every game alike.

For authors of games everything is on one page, `luckbase.game`.
"""
