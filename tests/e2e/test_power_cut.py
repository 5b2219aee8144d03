"""Killed, or cut off from power, at any step of a solve: the table is never damaged, and the same
command makes the same bytes of it.

A solve is traced once: before and after everything that it does to names or flushes, the disks that
a cut may leave are noted. Of a process that is killed that is what stands in the folder. Of a power
cut, a name counts as its folder was flushed last, or as it is now, each for itself; a content only
as it was flushed.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest

from luckbase.cluster.answers.find import status_of
from luckbase.cluster.answers.verify import check_files
from tests import solving
from tests.places import BOARDS
from tests.shared import plain

STEPS = ("fsync", "replace", "rename", "link", "unlink", "remove", "mkdir", "rmdir")
FEW = 4
"""Names that are not flushed of which all combinations are tried; of more so many of them."""


@dataclass(eq=False)
class Thing:
    """A file, or a folder with the names that are sure to be in it. flushed: what of its content
    is sure."""

    folder: bool
    flushed: bytes = b""
    names: dict[str, Thing] = field(default_factory=dict)


class Tracer:
    """Notes the disks that a cut may leave, at every step of what is done below `root`."""

    def __init__(self, root):
        self.root, self.steps = root, 0
        self.disks = {}
        self.rng = np.random.default_rng(0)
        self.things = {}
        self.lock = threading.RLock()
        self.top = self.thing(root)
        self.look()
        self.top.names = self.now(root)  # what stood there before is on the disk

    def thing(self, path):
        return self.things.setdefault(path.stat().st_ino, Thing(path.is_dir()))

    def now(self, folder):
        return {each.name: self.thing(each) for each in folder.iterdir()}

    def look(self):
        """Forget what is gone: its number may come again."""
        there = {path.stat().st_ino for path in [self.root, *self.root.rglob("*")]}
        self.things = {number: each for number, each in self.things.items() if number in there}

    # --- what may be left ---------------------------------------------------------------------

    def note(self):
        """The disks that a cut just now may leave."""
        self.look()
        killed = {
            str(path.relative_to(self.root)): None if path.is_dir() else path.read_bytes()
            for path in self.root.rglob("*")
        }
        self.keep(killed, True)
        at = {self.top: self.root}
        at |= {self.thing(path): path for path in self.root.rglob("*") if path.is_dir()}
        pending = [
            (folder, name, now.get(name))
            for folder, path in at.items()
            for now in [self.now(path)]
            for name in sorted(now.keys() | folder.names.keys())
            if now.get(name) is not folder.names.get(name)
        ]
        n = len(pending)
        some = [(False,) * n, (True,) * n, *map(tuple, self.rng.random((FEW, n)) < 0.5)]
        for choice in product((False, True), repeat=n) if n <= FEW else some:
            names = {folder: dict(folder.names) for folder in at}
            for (folder, name, thing), done in zip(pending, choice, strict=True):
                if done and thing is not None:
                    names[folder][name] = thing
                elif done:
                    names[folder].pop(name, None)
            self.keep(dict(self.left(self.top, names)), False)

    def left(self, folder, names, at=""):
        for name, thing in names.get(folder, folder.names).items():
            yield at + name, None if thing.folder else thing.flushed
            if thing.folder:
                yield from self.left(thing, names, f"{at}{name}/")

    def keep(self, disk, killed):
        self.disks.setdefault(tuple(sorted(disk.items())), (disk, killed))

    # --- what is done -------------------------------------------------------------------------

    def flushed(self, number):
        """Content or names of the file or folder of that number are on the disk."""
        thing = self.things.get(number)
        for path in [self.root, *self.root.rglob("*")]:
            if thing is not None and path.stat().st_ino == number:
                thing.names = self.now(path) if thing.folder else {}
                thing.flushed = b"" if thing.folder else path.read_bytes()

    def step(self, name, do):
        def traced(*args, **named):
            with self.lock:
                self.note()
                self.steps += 1
                if name == "fsync":
                    return self.flushed(os.fstat(args[0]).st_ino)
                done = do(*args, **named)
                self.look()
                return done

        return traced


@contextmanager
def traced(root):
    root.mkdir()
    tracer = Tracer(root)
    with pytest.MonkeyPatch.context() as patch:
        for name in STEPS:
            patch.setattr(os, name, tracer.step(name, getattr(os, name)))
        yield tracer


def bytes_of(table):
    return {plain(path.name): path.read_bytes() for path in sorted(table.rglob("*.parquet"))}


def goes_on(disk, killed, results, solve):
    """Solve again where a cut left this; fails where the table is damaged. Stages that a search
    found are not flushed: what a power cut takes of them is found again, and said."""
    results.mkdir()
    for name, content in disk.items():
        (results / name).parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            (results / name).mkdir(exist_ok=True)
        else:
            (results / name).write_bytes(content)
    for head in results.glob("*/*/*/manifest.json"):
        text = status_of(head.parent)
        assert text.state in ("complete", "partial"), text.why
        if text.states:
            with solving.open_table(head.parent) as table:
                faults = [
                    each for each in check_files(table) if "is not in the manifest" not in each
                ]
                assert not faults
    again = solve(results)
    assert not killed or not again.damaged
    assert all("/shards/" in each for each in again.damaged)
    return again


def cut_at_every_step(solve, folder, most):
    """Solve, and go on from what a cut may leave, wherever; from `most` of these where there are
    more, drawn at random. Returns how many steps there were."""
    with traced(folder / "traced") as tracer:
        complete = bytes_of(solve(folder / "traced").table)
    cut, tracer.disks = list(tracer.disks.values()), {}
    tracer.note()
    done = list(tracer.disks.values())
    rng = np.random.default_rng(0)
    drawn = rng.choice(len(cut), min(most, len(cut)), replace=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)  # of what goes on from there
        for k, (disk, killed) in enumerate([*done, *(cut[i] for i in drawn)]):
            again = goes_on(disk, killed, folder / str(k), solve)
            assert bytes_of(again.table) == complete and again.manifest.complete
            assert k >= len(done) or again.shards == 0, "a solve that said it was done was not"
    return tracer.steps


def full(results):
    board = solving.load_board(BOARDS / "pig/rounds.toml", rounds=1, cut=10)
    return solving.solve_board(board, results=results, workers=1)


def in_one_piece(results):
    board = solving.load_board(BOARDS / "jackpot/tiny.toml")
    return solving.solve_below(board, results=results, workers=1)


def by_stages(results):
    board = solving.load_board(BOARDS / "jackpot/tiny.toml")
    return solving.solve_below(board, results=results, workers=1, one_piece=0)


@pytest.mark.parametrize("most", [12, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("solve", [full, in_one_piece, by_stages])
def test_a_solve_cut_off_at_any_step_goes_on(solve, most, tmp_path):
    assert cut_at_every_step(solve, tmp_path, most) > 20
