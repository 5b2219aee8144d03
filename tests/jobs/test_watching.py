"""A solve that runs, watched from elsewhere: its status and its events."""

import json
import os
from dataclasses import replace
from datetime import datetime, timedelta

import luckbase
from luckbase.cluster.answers.find import SILENT_SECONDS, running
from luckbase.cluster.solve import progress as watch
from luckbase.cluster.solve.progress import Progress, Watch
from luckbase.cluster.store import RUNNING
from luckbase.cluster.store.storage import Folder
from luckbase.cluster.store.writer import Writer
from tests.cluster.store.test_writer import HEAD
from tests.places import ROOT

TINY = str(ROOT / "boards/press-your-luck/tiny.toml")


def test_status_shows_a_solve_that_runs(tmp_path, monkeypatch, command):
    monkeypatch.setattr(watch, "WRITE_SECONDS", 0.0)  # no option
    seen = []

    def look(now):
        if now.shards > 5 and not seen:
            (only,) = luckbase.status(results=tmp_path)
            assert only.running is not None and only.state == "partial"
            code, out, _ = command("status", "--results", tmp_path)
            assert code == 1
            seen.append((only.running, out))

    board = luckbase.load_board(TINY, frontier=2)
    luckbase.solve(board, results=tmp_path, workers=1, on_progress=look)
    ((text, shown),) = seen
    assert text["process"] == os.getpid() and text["shards_total"] == 74
    assert 5 <= int(str(text["shards"])) < 74 and int(str(text["states"])) > 0
    assert f"running: process {os.getpid()} on " in shown and " of 74 shards, " in shown
    assert "  this process: 1 core" in shown and "goes on with: luckbase solve" in shown
    (after,) = luckbase.status(results=tmp_path)
    assert after.running is None and not list(tmp_path.rglob(RUNNING))


def test_a_solve_prints_events_and_at_last_what_it_did(tmp_path, every_line, command):
    words = ["--set", "frontier=2", "--workers", "1", "--results", tmp_path, "--json"]
    *events, last = map(json.loads, command("solve", TINY, *words)[1].splitlines())
    assert {event["event"] for event in events} == {"progress"} and last["event"] == "solved"
    shards = [event["shards"] for event in events]
    assert shards == sorted(shards)
    assert shards[-1] == events[-1]["shards_total"] == last["file_count"]
    assert events[-1]["states"] == events[-1]["states_total"] == last["states"]
    assert all(event["seconds"] >= 0 <= (event["seconds_left"] or 0) for event in events)


def test_a_solve_that_was_killed_on_this_machine_does_not_run(tmp_path):
    storage = Folder(tmp_path)
    with Writer(storage, tmp_path, HEAD).take() as writer, Watch(tmp_path, print, print) as shown:
        shown.show(Progress(1, 2, 3, 4, 5.0), [])
        assert running(tmp_path) is not None
        # another process has its number now
        writer.manifest.writer = replace(writer.manifest.writer, started="0")
        writer.commit()
        assert running(tmp_path) is None


def test_a_solve_that_has_long_been_silent_does_not_run(tmp_path):
    with Watch(tmp_path, print, print) as shown:
        shown.show(Progress(1, 2, 3, 4, 5.0), [])
        text = json.loads((tmp_path / RUNNING).read_text())
        assert running(tmp_path) == text
        now = datetime.now().astimezone()
        for age, there in ((SILENT_SECONDS - 5, True), (SILENT_SECONDS + 5, False)):
            at = (now - timedelta(seconds=age)).isoformat()
            (tmp_path / RUNNING).write_text(json.dumps({**text, "at": at}))
            assert (running(tmp_path) is not None) == there
        for bad in ("", "{", "[]", '{"at": 3}', '{"at": "soon"}'):
            (tmp_path / RUNNING).write_text(bad)
            assert running(tmp_path) is None
