"""The explorer: a page in a browser, and the same as JSON, of tables that are there.

`server` listens and answers; `views` has the addresses and their description. `report` is a table
in one file, which needs no server.
"""
