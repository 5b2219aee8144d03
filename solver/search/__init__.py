"""The states below some roots: found, ordered, solved by backward induction, for any game.

* `game_graph`: `Graph`, the states below some roots, merged by key and solved: begin here.
* `depth_first`: the search that it runs: each state is solved once all below it is, and strongly
  connected components are found on the way.
* `bellman_step`: what the actions of one state are worth, and which is taken: compiled, the only
  one. `bellman`: the same for many states at a time.
* `components`: a component of several states, solved as one piece: `solver.linear` where nothing is
  chosen, `interval_iteration` where something is.
* `explore`: which states there are, level by level, nothing solved.
* `stage`: what lies below some roots cut by a level, into stages and boxes of them, which
  `find_stages` finds, and how they are solved; `stage_kernels` the compiled part of both.
  `spread`: how a stage lies before it is found, and the grid that it is cut along.
* `tally`: where states stand among the groups that people care about.
* `estimate`: about how many states there are; what says that there are far too many.
* `find_level`: a level of a game that declares none, from a sample of its edges.
  `level_words`: levels of keys as one number, for compiled code.
* `in_memory`: the tiers of a layout solved in memory. `check`: does a game keep its contract? One
  call in its author's test.
* `keys`: a state as one number, and a hash table of them.
* `codes`: numbers that stand where there is no action. `borrowed`: arrays lent to compiled code.
"""
