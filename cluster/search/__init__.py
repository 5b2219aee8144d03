"""The search below some roots, over workers.

* `solve`: the whole of it; `roots`: before it begins.
* `frontier`: the level whose states are sharded, and who gets which.
* `merge`: payoff tables by key, and their union; `given`: states at which a search ends.
* `cut`: a search cut at a depth, with bounds.
"""
