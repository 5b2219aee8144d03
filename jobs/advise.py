"""``luckbase advise``: follows a real game in words, or replays one that was written down."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import luckbase
from luckbase.cluster.words import Help
from luckbase.jobs import options, terminal
from luckbase.solver.errors import OptionError, RequestError

if TYPE_CHECKING:
    from luckbase.cluster.play.advise import Following, Said
    from luckbase.cluster.play.episode import Episode


@options.command(
    "luckbase advise press-your-luck/1985-02 --set score_unit=500",
    "luckbase advise --file press-your-luck/episodes/tiny --out page.html",
    api=luckbase.episode,
)
def advise(
    board: Annotated[
        str | None, options.Argument("A board file; none where --file says it.", "[BOARD]")
    ] = None,
    more: options.More = None,
    file: Annotated[
        str | None, Help("Replay a game that is written down; each decision priced.", "EPISODE")
    ] = None,
    out: Annotated[
        str | None, Help("Write the replay as a page, in one file.", "PAGE.html")
    ] = None,
    start: options.From = None,
    settings: options.Settings = None,
    results: options.Results = Path("results"),
    as_json: options.Json = False,
    **how: Any,
) -> None:
    """Follow a real game in words: whose turn, what to do, and why.

    A line says who has what (Ed 0, 4 spins; Peter 2500, 3 spins; Michael 0), or what happened
    (Ed 3000 + spin; Ed passes 4 to Peter; Peter whammy); the line help says more. Names may be
    cut short. With --json each line gives one JSON object."""
    if out is not None:
        if file is None:
            raise OptionError("--out: a page is made of a game that is written down; add --file")
        options.check_ending("--out", out, (".html",))
    typed: dict[str, Any] = dict(options.read_settings(settings))
    if file is None and how["skip"]:
        raise OptionError("--skip: decisions of a game that is written down; add --file")
    if file is not None:
        if start or more:
            said = "where a game that is written down begins stands in its file"
            raise OptionError(f"--from: {said}; leave it out")
        _replayed(luckbase.episode(file, board, results=results, **how, **typed), out, as_json)
        return
    if board is None:
        raise OptionError(
            "expected a board file or its name, or --file with a game that is written down; the "
            "command boards lists both"
        )
    del how["skip"]
    root = options.read_start(start, more)
    with luckbase.advise(board, root, results=results, **how, **typed) as following:
        _follow(following, as_json)


def _replayed(episode: Episode, out: str | None, as_json: bool) -> None:
    if out is not None:
        from luckbase.jobs.web.report import episode_page

        size = terminal.write_file(out, episode_page(episode).encode())
        terminal.say(f"{out}: {size:,} bytes", whole=True)
    if as_json:
        terminal.print_json(episode)
        return
    terminal.print_to_fit(f"{episode.title}: {episode.origin}")
    for heads, rows in (episode.table(), episode.summary()):
        terminal.print_table("", heads, rows, sys.stdout)
    for line in episode.unpriced():
        terminal.print_to_fit(line)


def _follow(following: Following, as_json: bool) -> None:
    """Lines from stdin until there are no more; on a terminal a line that can not be is only said
    to be so, elsewhere it ends the command."""
    asks = sys.stdin.isatty()
    if not as_json:
        terminal.say(f"{following.game.board.name}: help says what to write, quit leaves")
        if following.offered:
            terminal.say(f"it begins as the board says: {following.words.say(following.here)}; "
                         "or write who has what")  # fmt: skip
        elif not following.positions:
            terminal.say(f"write who has what, in turn order: {following.words.words[0][0]}")
    if following.positions and not following.offered:
        _show(following, following.advise(), as_json)
    for number, line in enumerate(_lines(asks and not as_json), start=1):
        if not line or line.startswith("#"):
            continue
        if line.lower() in ("quit", "q", "exit"):
            return
        try:
            said = following.say(line)
        except RequestError as error:
            if asks:
                terminal.say(f"{error}")
                continue
            raise type(error)(f"line {number}: '{line[:60]}': {error}") from None
        _show(following, said, as_json)


def _lines(prompt: bool) -> Iterator[str]:
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    while True:
        if prompt:
            print("> ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        yield line.strip()


def _show(following: Following, said: Said, as_json: bool) -> None:
    from luckbase.cluster.play.advise import in_words

    if as_json:
        terminal.print_json(said)
        return
    for line in [said.text] * bool(said.text) + in_words(said, following.game):
        terminal.print_to_fit(line)
    sys.stdout.flush()
