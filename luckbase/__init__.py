"""The exact payoff of every state of a game, solved overnight and asked in the morning.

One name: everything is under it. The rooms `solver`, `cluster` and `jobs` stand beside this folder
in a checkout and are links here.
"""
