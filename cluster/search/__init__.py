"""The search below some roots, over workers.

* `solve`: the whole of it: begin here; `plan`: its roots, and what it will take.
* `stages`: the driver of a large one; `shards`: how a level is cut into tasks, and which comes
  next; `tasks`: what workers do; `files`: what lies between the two passes.
"""
