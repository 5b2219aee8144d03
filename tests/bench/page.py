"""The bench suite ``page``: what a first view costs on a phone.

Bytes, requests, and the time to the first answer on a processor slowed four times, as Lighthouse
has it; then from a change of a field to its answer. Playwright drives the machine's Chromium.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from luckbase.jobs import terminal
from luckbase.solver import sentences
from tests.bench.web import SETTINGS, Server, serving

SLOWED, TIMES = 4, 5
SLOW_NETWORK = {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8,
                "uploadThroughput": 0.75e6 / 8}  # fmt: skip
"""Milliseconds, bytes a second: Lighthouse's slow 4G."""
WATCH = """() => {
  addEventListener("DOMContentLoaded", () => new MutationObserver(() => {
    const head = document.querySelector("main h1");
    if (head && !window.first) window.first = performance.now();
  }).observe(document.body, {childList: true, subtree: true}));
  new PerformanceObserver(list => { window.shift = (window.shift ?? 0)
    + list.getEntries().reduce((sum, each) => sum + each.value, 0); })
    .observe({type: "layout-shift", buffered: true});
}"""
"""Remembers when the first head is there, and how far what was shown has moved."""
EDIT = """() => new Promise(done => {
  const began = performance.now();
  new MutationObserver((_, watch) => { watch.disconnect(); done(performance.now() - began); })
    .observe(document.querySelector(".verdict"), {childList: true});
  document.querySelector(".step button:last-child").click();
})"""


def page_suite(board: Path, results: Path) -> None:
    """Print the table."""
    from luckbase import cluster, solver

    solved = cluster.solve(solver.load_board(board, **SETTINGS), results=results)
    rows: list[tuple[str, ...]] = []
    with serving(Path(solved.table)) as server, _browser() as browser:
        id = json.loads(server.get("/api/tables"))["tables"][0]["id"]
        for name, view in (("the list", ""), ("Explore", f"#/t/{id}/state"),
                           ("Charts", f"#/t/{id}/grid")):  # fmt: skip
            seen = [_first_view(browser, server, view, slow=False) for _ in range(TIMES)]
            far = _first_view(browser, server, view, slow=True)
            times = [each["first"] for each in seen]
            edits = [each["edit"] for each in seen if "edit" in each]
            rows.append(
                (name, sentences.size(seen[-1]["bytes"]), str(seen[-1]["requests"]),
                 f"{statistics.median(times):.0f} ms", f"{far['first']:.0f} ms",
                 f"{max(each['shift'] for each in seen):.3f}",
                 f"{statistics.median(edits):.0f} ms" if edits else "–")
            )  # fmt: skip
    title = f"First views on a phone, a processor slowed {SLOWED} times"
    heads = ("", "bytes", "requests", "first answer", "on slow 4G", "layout shift", "an edit")
    terminal.print_table(title, heads, rows, sys.stdout)


@contextmanager
def _browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def _first_view(browser: Any, server: Server, view: str, slow: bool) -> dict[str, Any]:
    """What a view costs somebody who was never here: bytes as they were sent, requests,
    milliseconds to the first head, the layout shift; on Explore, milliseconds of an edit too."""
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.add_init_script(f"({WATCH})()")
    developer = context.new_cdp_session(page)
    sizes: list[int] = []
    developer.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    developer.send("Network.enable")
    developer.send("Emulation.setCPUThrottlingRate", {"rate": SLOWED})
    if slow:
        developer.send("Network.emulateNetworkConditions", SLOW_NETWORK)
    page.goto(f"http://{server.host}:{server.port}/{view}")
    page.wait_for_selector("main h1")
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(200)
    found = {"bytes": int(sum(sizes)), "requests": len(sizes),
             "first": page.evaluate("window.first"),
             "shift": page.evaluate("window.shift ?? 0")}  # fmt: skip
    if "/state" in view:
        found["edit"] = page.evaluate(EDIT)
    context.close()
    return found
