"""``python -m luckbase``: the command line."""

from luckbase.jobs.app import main

main()
