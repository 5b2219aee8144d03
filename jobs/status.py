"""``luckbase status``: what is complete, partial, stale or damaged, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

import luckbase
from luckbase.jobs import options
from luckbase.jobs.options import read_results
from luckbase.jobs.terminal import render


def status(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLE...",
            help="Tables' directories, board files, folders of them, job files; all if not given.",
        ),
    ] = None,
    settings: options.Settings = None,
    results: options.ResultsOrJob = None,
    as_json: options.Json = False,
) -> int:
    """Say of each table whether it is complete, partial, stale or damaged, and why (exit code 1 if
    not all are complete and fresh)."""
    read_results(results or "results")
    statuses = luckbase.status(
        *(tables or []), results=results, settings=options.read_settings(settings)
    )
    for each in statuses:
        if as_json:
            render.print_json(each)
            continue
        options_said = "".join(f" {name}={_word(v)}" for name, v in each.options.items())
        if each.state in ("missing", "refused"):
            print(f"{each.state:9s} {each.table}{options_said}")
            print(*(f"          {reason}" for reason in each.why), sep="\n")
            continue
        of = "" if each.tiers == each.tiers_in_all else f"{each.tiers} of "
        files = f"{of}{render.many(each.tiers_in_all, 'tier')}, " if each.tiers_in_all else ""
        below = f"below {render.many(each.roots, 'root')}, " if each.roots else ""
        print(
            f"{each.state:9s} {each.table}{options_said}  {files}{below}"
            f"{render.counted(each.states, 'state')}, {render.size(each.bytes)}"
        )
        for reason in [*_running(each.running or {}), *each.why]:
            print(f"          {reason}")
    if not statuses and not as_json:
        print(f"no tables under {results or 'results'}")
    return 0 if all(each.state == "complete" for each in statuses) else 1


def _running(said: dict[str, Any]) -> Iterator[str]:
    """What a solve that runs is doing, in lines."""
    if not said:
        return
    left = said["seconds_left"]
    far = f"{said['shards']} of {render.many(said['shards_total'], 'shard')}"
    if said["finding"]:
        far = render.found_so_far(said["states"], said.get("states_about"), said["finding"])
    yield (
        f"running: process {said['process']} on {said['host']} since {said['since']}, {far}, "
        f"{render.count(said['states_a_second'])} states/s, {render.size(said['memory'])} here"
        + ("" if left is None else f", about {render.duration(left)} left")
    )
    for node in said["nodes"]:
        doing = f"{render.many(node['slots'], 'core')}"
        if "shards_done" in node:
            doing += f", {render.many(node['shards_done'], 'shard')} done"
        if "left_out" in node:
            doing = f"left out: {node['left_out']}"
        yield f"  {node['node']}: {doing}"
    if said["last_note"]:
        yield f"  {said['last_note']}"


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
