"""Running a solve.

* `driver`: the pipeline of every solve.
* `schedule`: what to do next.
* `worker`: tasks, and workers that are threads of this process.
* `ray`, `nodes`: workers of a Ray cluster.
"""
