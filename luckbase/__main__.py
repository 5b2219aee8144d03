"""``python -m luckbase`` and ``luckbase``: the command line."""

import gc
import os
import signal
from types import FrameType


def main() -> None:
    """Run the command line and leave with its exit code."""
    gc.set_threshold(50_000)  # what is imported stays: to look through it takes 20 ms of a question
    mine = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is ignored
    if mine:
        signal.signal(signal.SIGINT, _leave)
    from luckbase.jobs.app import main

    if mine:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    main()


def _leave(number: int, frame: FrameType | None) -> None:
    """Ctrl+C while parts are imported, where a KeyboardInterrupt would be a traceback."""
    os._exit(128 + number)


if __name__ == "__main__":
    main()
