"""What agents get: a profile of policies makes a Markov chain of a game.

* `chain`: the states that a profile comes to, and the chances.
* `evaluate`: its exact payoffs, best responses, what each decision costs.
* `visits`: how often a play comes to each state.
* `simulate`: Monte Carlo.
"""
