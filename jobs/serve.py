"""``luckbase serve``: the tables that are there, in a browser and as JSON."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from luckbase.cluster import words
from luckbase.cluster.words import Help
from luckbase.jobs import options, terminal
from luckbase.solver.errors import OptionError


@options.command()
def serve(
    tables: Annotated[
        list[str] | None,
        options.Argument(
            "Tables' directories, board files, folders of tables; all results if not given.",
            "[TABLE|BOARD|FOLDER...]",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Listen at this port; 0: any free.")
    ] = 8714,
    no_open: Annotated[bool, Help("Do not open the browser.")] = False,
    host: Annotated[
        str, Help("Listen at this address of the machine, so that others may ask too.", "H")
    ] = "127.0.0.1",
    settings: options.Settings = None,
    results: options.Results = Path("results"),
) -> None:
    """Explore tables in a browser, and ask them over HTTP as JSON; nothing is ever written.

    Listens on this machine alone unless --host says otherwise. Ctrl+C ends it."""
    missing = [name for name in ("starlette", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise OptionError(
            f"serve: needs {' and '.join(missing)}, which the first install leaves out; get them "
            "with: pip install 'luckbase[web]', in a checkout pip install '.[web]'"
        )
    from luckbase.jobs.web import server

    pool = server.pool_of(tables or [], results, options.read_settings(settings))
    listener = server.listen(host, port)
    if not server.is_local(host):
        terminal.say(
            f"luckbase: warning: listening at {host}: whoever reaches this machine can read "
            "these tables"
        )
    address = server.address_of(listener)
    terminal.say(f"{words.many(len(pool.listed()), 'table')} at {address} (Ctrl+C ends it)")
    server.run(pool, listener, host, None if no_open else address)
