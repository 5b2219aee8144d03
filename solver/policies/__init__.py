"""The payoffs of agents: a profile of policies turns a game into a Markov chain."""
