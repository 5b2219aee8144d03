"""Stands in for an agent of Ray, run as a script: does nothing, and ends with who started it.

It imports nothing of luckbase or Ray, which would take longer than all that it saves.
"""

import os
import time

LOOK_SECONDS = 1.0


def wait() -> None:
    """Return once the process that started this one has ended."""
    parent = int(os.environ.get("RAY_RAYLET_PID", os.getppid()))  # which may be over already
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    wait()
