"""Running a solve.

* `options`: what is asked beside the board, how far a solve is, what it did; `watch`: what it says
  while it runs.
* `plan`: shards, bytes, memory, seconds, and whether they fit; `lock`: is nobody else at it, and
  what of the table is there.
* `driver`: hands shards out and commits what comes back; `schedule`: what to do next, without a
  clock, a disk or Ray.
* `worker`: what one does, and what the driver asks of all. `threads`: those of this process; `ray`:
  those that Ray places, started here or of a cluster; `nodes`: its machines; `remote`: whether a
  machine is made of the same.
"""
