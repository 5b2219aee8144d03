"""``python -m jobs`` is the command ``luckbase``."""

from jobs.app import main

if __name__ == "__main__":
    main()
