"""The search below some roots, over workers.

* `solve`: the whole of it: begin here; `roots`: before it begins; `planned`: what it will take.
* `by_stages`: the driver of a large one; `level_shards`: how a level is cut into tasks, and which
  comes next; `stage_tasks`: what workers do; `stage_file`: what lies between the two passes.
* `given`: states at which a search ends; `held_stages`: those of them that lie in files by stages;
  `used`: those of another table, asked as they are met.
"""
