"""What a person runs: one command a file, which parses, calls `luckbase`'s page and prints.

`app` has the commands, their exit codes, and where our errors become a sentence; `options` what
several commands take; `nights/` an example of a job file; `terminal` what people see; `plots` draws
pictures; `web` is the explorer. A command is imported when it is typed, and nothing heavy before it
needs that.
"""
