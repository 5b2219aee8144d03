"""What a person runs: commands, which parse, call `luckbase`'s page and print.

`app` has their names and exit codes, and says in which module each is: it is imported when it is
typed, and nothing heavy before it needs that. `nights/` is an example of a job file; `web` is the
explorer.
"""
