"""What agents get: a profile of policies makes a Markov chain of a game."""
