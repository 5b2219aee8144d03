"""The command line: commands parse their arguments, call the functions of `luckbase` and print.

`app` maps each command to its module, which is imported when the command is used; heavy packages
are imported only when needed. `nights/` contains an example of a job file. `web` contains the pages
of ``serve``.
"""
