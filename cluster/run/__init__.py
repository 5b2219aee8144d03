"""Running a solve.

* `options`: what is asked beside the board, how far a solve is, what it did.
* `plan`: shards, bytes, memory, seconds; `planned`: the same for people.
* `opening`: is there room, is nobody else at it, what of the table is there.
* `driver`: hands shards out and commits what comes back; `schedule`: what to do next, without a
  clock, a disk or Ray.
* `session`: workers, threads or Ray's; `worker`: what one does; `scratch`: what they hand on.
"""
