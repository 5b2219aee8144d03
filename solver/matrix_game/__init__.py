"""Zero-sum matrix games: one at a time, eight at a time, each with its proof.

* `certified`: many small games: value, a strategy a side, and the gap that proves them.
* `simplex`: one game at a time, compiled, by the steps that `certified` describes.
* `eight_games`: eight at once from a guessed support, in `lanes` of eight numbers.
"""
