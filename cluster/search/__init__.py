"""The search below some roots, over workers.

* `solve`: the whole of it; `roots`: before it begins.
* `split`: the level whose states are sharded, and who gets which.
* `merge`: payoff tables by key, and their union; `given`: states at which a search ends.
* `cut`: a search cut at a depth, with bounds.
"""
