"""Running a solve.

* `options`: how a board is solved; `progress`: how far a solve is, what it did, what it says while
  it runs.
* `driver`: the pipeline of every solve, full tables and searches alike: what is there, the lock,
  shards handed out, what comes back committed. `lock`: is nobody else at it, and what of the table
  is there; `schedule`: what to do next, without a clock, a disk or Ray.
* `tiers`: the solve of a full table; `plan`: its shards, bytes, memory, seconds, and whether they
  fit.
* `worker`: tasks, jobs, receipts, and the workers of this process; `ray`: those that Ray places,
  started here or of a cluster; `nodes`: its machines, and whether each is made of the same.
"""
