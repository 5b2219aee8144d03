"""The pages of ``luckbase serve``, which are also available as JSON.

`server` maps addresses to `views`, and `pages` shows their results. `report` writes a page about a
table to a file, which needs no server.
"""
