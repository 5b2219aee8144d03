"""A game: what it gives, and what follows from that for every game alike.

For authors of games everything is on one page, `luckbase.game`. In the order in which one reads:

* `rules`: what every game gives, bound to a board: `Rules`, and the transition in it: what can
  happen at a state, a compiled function, and a decorator that compiles plain Python to one.
* `fields`: the fields of a state, declared once; what people read and write follows from them.
* `capabilities`: what only some games have: a layout in tiers with a kernel, agents, charts, ….
* `groups`: what people group decisions by, and at what number a decision turns; a capability too.
* `game`: `Game`, the rules bound to a board, which everything else in the house takes; games in
  somebody's own file.
* `faults`: what breaks the contract at one state, in a sentence.
* `arrays`: the types of what the rooms hand to each other.
"""
