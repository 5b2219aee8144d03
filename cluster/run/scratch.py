"""Payoffs as the kernel left them, for the tiers of one run that read them: raw float64 files.

``scratch/<run>/<tier>.f64``. They belong to one run of the driver: what an earlier run left is
deleted unread, for nobody can tell what a crash did to it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from luckbase.cluster.table.storage import attempt
from luckbase.solver.game.arrays import Floats
from luckbase.solver.game.capabilities import Layout


def tier_file(run: Path, layout: Layout[Any], tier: Any) -> Path:
    """The payoffs of a tier with all its parts, in the scratch folder `run`."""
    return run / f"{layout.tier_number(tier)}.f64"


def write(payoffs: Floats, path: Path) -> Path:
    """Write a whole tier's payoffs beside `path`; returns where, for the driver to rename: nobody
    reads half of them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{attempt()}.part")
    with beside.open("wb") as file:
        file.write(np.ascontiguousarray(payoffs).data)  # tofile does not say that a disk is full
    return beside


def write_part(payoffs: Floats, path: Path, first: int) -> None:
    """Write a part's payoffs to their place, from number `first` on in the tier's file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as file:
        file.seek(8 * first)
        file.write(np.ascontiguousarray(payoffs).data)


def read(path: Path, shape: tuple[int, ...]) -> Floats:
    """A tier's kept payoffs, mapped: only what is looked at is read. Not to be written to."""
    mapped = np.memmap(path, np.float64, mode="c", shape=shape)
    return np.asarray(mapped)
