"""The states below some roots: found, ordered, solved by backward induction, for any game.

* `game_graph`: `Graph`, the states below some roots, merged by key and solved: begin here.
* `depth_first`: the search that it runs: each state is solved once all below it is, and strongly
  connected components are found on the way; `cycles` solves those as one piece.
* `bellman`: what the actions of states are worth, and which is taken.
* `expand`: the edges of states, held to the rules; where states stand among a game's groups.
* `keys`: a state as one number, a hash table of them, and what a level says of them.
* `explore`: which states there are, level by level, nothing solved; about how many there are.
* `find_level`: a level of a game that declares none.
* `stages`: what lies below some roots cut by a level, into stages and boxes of them. `find_stages`,
  with `stage_kernels`, finds the states of one, `sweep` solves them.
"""
