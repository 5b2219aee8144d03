"""What agents get: a profile of policies makes a Markov chain of a game.

* `chain`: the states that a profile comes to, the chances, and how often a play comes to each.
* `evaluate`: its exact payoffs, best responses, what each decision costs.
* `simulate`: Monte Carlo.
"""
