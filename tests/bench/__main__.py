"""``python -m tests.bench``."""

from tests.bench import main

main()
