"""Where things are."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
BOARDS = ROOT / "boards"
IN_MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
"""Where flushing a file takes no time: on a disk it is milliseconds, and tests flush many."""
