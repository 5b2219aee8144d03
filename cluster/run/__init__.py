"""Running a solve.

* `options`: how a board is solved; `progress`: how far a solve is, what it did, what it says while
  it runs.
* `plan`: shards, bytes, memory, seconds, and whether they fit; `lock`: is nobody else at it, and
  what of the table is there.
* `driver`: hands shards out and commits what comes back; `schedule`: what to do next, without a
  clock, a disk or Ray.
* `worker`: what one does, and what the driver asks of all. `threads`: those of this process; `ray`:
  those that Ray places, started here or of a cluster; `nodes`: its machines, and whether each is
  made of the same.
"""
