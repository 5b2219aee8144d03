"""What a person sees on a terminal.

* `render`: numbers, progress, tables; text made to fit a width.
* `solve_report`: what a solve did, what is due of many boards and what became of them.
* `process`: signals end a command as Ctrl+C does; a stdout that can not be written; numba compiles.
"""
