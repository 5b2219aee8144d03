"""Running a solve.

* `options`: what is asked beside the board, how far a solve is, what it did.
* `plan`: shards, bytes, memory, seconds; `planned`: the same for people.
* `opening`: is there room, is nobody else at it, what of the table is there.
* `driver`: hands shards out and commits what comes back; `schedule`: what to do next, without a
  clock, a disk or Ray; `shards`: the loop between the two.
* `session`: workers, threads of this process; `ray_workers`: Ray's; `ray_session`: Ray started
  here, or a cluster that is joined; `starting`: threads until Ray is there; `no_agent`: a process
  that Ray wants, and nobody needs.
* `worker`: what one does; `payoffs`: what threads hand on; `remote`, `environment`: whether a
  machine of a cluster is made of the same.
* `memory_used`: the memory that a task used.
* `watch`: what a solve says while it runs.
"""
