"""What a person runs: one command a file, which parses, calls `luckbase`'s page and prints.

`app` has the commands, their exit codes, and where our errors become a sentence; `options` what
several commands take; `nights/` an example of a job file; `terminal` what people see; `plots` draws
pictures. Nothing heavy is imported before a command needs it.
"""
