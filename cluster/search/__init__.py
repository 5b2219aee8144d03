"""Searches below given roots, spread over workers.

* `solve`: the whole search; begin here.
* `plan`: estimates of states, bytes and time.
* `stages`: the driver of a large search.
* `shards`: how a level is cut into tasks, and their order.
* `tasks`: the code that workers run.
* `files`: stage files on disk between the two passes.
"""
