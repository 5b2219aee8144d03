"""The explorer: a page in a browser, and the same as JSON, of tables that are there.

`server` has the addresses and answers; `report` is a table in one file, which needs no server.
"""
