"""Who plays: agents by name, what a profile of them is worth, a person's game, drawings of play.

* `agents`: agents as people name them; `opening`: tables' folders as agents.
* `evaluate`: exact payoffs, each agent against each; `simulate`: Monte Carlo.
* `talk`: a person's game, text out, answers in; `bidding`: where both choose at once; `source`: the
  table that prices it.
* `draw`: how agents play, as data and as GraphViz DOT.
"""
