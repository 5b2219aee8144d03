"""Who plays: agents by name, what a profile of them is worth, a person's game, drawings of play.

* `agents`: agents as people name them.
* `evaluate`: exact payoffs, each agent against each, Monte Carlo.
* `game`: a person's game, text out, answers in; `tables`: those that play or price it.
* `draw`: how agents play, as data and as GraphViz DOT.
"""
