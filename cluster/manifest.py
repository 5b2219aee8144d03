"""The manifest: the ledger of a table. What it does not name is not in the table.

``manifest.json``, JSON, keys in this order, format 2::

    format, game, board            2, "press-your-luck", "1985-02"
    board_file, settings           where the board was read, and the --set options, for `status`
    canonical, board_hash          the board as `solver.board.canonical` gives it, and its SHA-256
    rules_version, solver_version  of the game's rules, and of luckbase
    solve_id                       the first 12 digits of the hash of all of the above that changes
                                   values or rows; the directory's name
    columns, payoffs               names
    tiers                          how many files the table has when complete, one a part of a
                                   tier; 1 for roots
    roots                          null for a full table; for what lies below some roots: from
                                   (their fields), max_depth, using (a table's directory and its
                                   solve id), or null each
    shards                         while such a search runs: by name, its rows, bytes, states solved
    files                          by name (folder, and #part): tier (number), rows,
                                   row_group_rows, first_key, last_key, bytes, sha256, error
                                   (the bound on a stored payoff's), seconds (solving, writing)
    complete                       whether every tier is there
    scratch_boot                   the run of the machine that wrote scratch/, "" when complete
    checksum                       SHA-256 of everything above as compact JSON

It is written beside its place, flushed and renamed after each tier's file is in place, so a reader
sees a whole tier or none. Nothing but `files` → `seconds` depends on when or with how many workers
a complete table was solved.

Version history: 1 (2026-11) first. 2 (2026-11) roots, shards; error by file, not by table.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from cluster.store import FORMAT, KEY_SHIFT, beside, payoff_columns
from cluster.store import replace as rename
from solver.board import Board, board_hash, canonical
from solver.errors import CorruptTableError, MissingTableError
from solver.game import Game, TieredGame

NAME = "manifest.json"


@dataclass(frozen=True)
class FileEntry:
    """One tier's file. Keys are uint64; bytes on disk; seconds of one core."""

    tier: int
    rows: int
    row_group_rows: int
    first_key: int
    last_key: int
    bytes: int
    sha256: str
    error: float
    seconds: dict[str, float]


@dataclass(frozen=True)
class Using:
    """The table at whose frontier a search ends."""

    table: str
    solve_id: str


@dataclass(frozen=True)
class Roots:
    """What a table of roots was asked for: `start`, the fields of each root, in the order of their
    keys; the depth at which it was cut; the table that it ends at."""

    start: list[dict[str, Any]]
    max_depth: int | None = None
    using: Using | None = None


@dataclass(frozen=True)
class ShardEntry:
    """One shard of a search that runs: the rows and bytes of its file; seconds of one core."""

    rows: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Manifest:
    """A table's ledger; see the module's docstring for each member."""

    format: int
    game: str
    board: str
    board_file: str
    settings: dict[str, str]
    canonical: dict[str, Any]
    board_hash: str
    rules_version: int
    solver_version: str
    solve_id: str
    columns: list[str]
    payoffs: list[str]
    tiers: int
    roots: Roots | None = None
    shards: dict[str, ShardEntry] = field(default_factory=dict)
    files: dict[str, FileEntry] = field(default_factory=dict)
    complete: bool = False
    scratch_boot: str = ""

    @property
    def payoff_error(self) -> float:
        """The bound on the error of a stored payoff."""
        return max((entry.error for entry in self.files.values()), default=0.0)

    @property
    def rows(self) -> int:
        """States in the table so far."""
        return sum(entry.rows for entry in self.files.values())

    @property
    def bytes(self) -> int:
        """Bytes of the table's files so far."""
        return sum(entry.bytes for entry in self.files.values())

    def with_shard(self, name: str, entry: ShardEntry) -> Manifest:
        """The manifest with one more shard of a search."""
        return replace(self, shards=dict(sorted({**self.shards, name: entry}.items())))

    def with_file(self, folder: str, entry: FileEntry) -> Manifest:
        """The manifest with one more tier; folders stay sorted, so the order of work is gone."""
        files = dict(sorted({**self.files, folder: entry}.items()))
        done = len(files) == self.tiers
        boot = "" if done else self.scratch_boot
        shards = {} if done else self.shards
        return replace(self, files=files, complete=done, scratch_boot=boot, shards=shards)


def solver_version() -> str:
    """The version of luckbase that is installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("luckbase")
    except PackageNotFoundError:
        return "not installed"


def solve_id(game: Game, roots: Roots | None = None) -> str:
    """What names a solve: all that changes values or rows. 12 hexadecimal digits."""
    said: list[Any] = [FORMAT, game.board.game, board_hash(game.board), game.rules_version]
    if roots is not None:
        said += [roots.start, roots.max_depth, roots.using and roots.using.solve_id]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:12]


def table_directory(results: Path, game: Game, roots: Roots | None = None) -> Path:
    """results/<game>/<board>/<solve id>."""
    return results / game.board.game / game.board.name / solve_id(game, roots)


def new_manifest(
    game: Game, board_file: str, settings: dict[str, str], roots: Roots | None = None
) -> Manifest:
    """The manifest of a table of which nothing is solved yet."""
    board: Board = game.board
    columns, payoffs, tiers = list(game.columns), payoff_columns(game), 1
    if roots is None:
        assert isinstance(game, TieredGame)
        constant = list(game.tier_fields(game.tiers()[0]))
        columns = constant + [name for name in columns if name not in constant]
        tiers = sum(len(game.parts(tier)) for tier in game.tiers())
    return Manifest(
        format=FORMAT,
        game=board.game,
        board=board.name,
        board_file=board_file,
        settings=dict(sorted(settings.items())),
        canonical=canonical(board),
        board_hash=board_hash(board),
        rules_version=game.rules_version,
        solver_version=solver_version(),
        solve_id=solve_id(game, roots),
        columns=columns,
        payoffs=payoffs,
        tiers=tiers,
        roots=roots,
    )


def key_range(tier_number: int, rows: int, start: int = 0) -> tuple[int, int]:
    """The first and the last key of `rows` rows of a tier, from row `start` on."""
    first = (tier_number << KEY_SHIFT) + start
    return first, first + rows - 1


def _checksum(form: dict[str, Any]) -> str:
    text = json.dumps(form, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def write_manifest(table: Path, manifest: Manifest) -> None:
    """Replace the manifest on disk in one step."""
    form = asdict(manifest)
    form["checksum"] = _checksum(form)
    path = table / NAME
    table.mkdir(parents=True, exist_ok=True)
    with beside(path).open("w", encoding="utf-8") as file:
        json.dump(form, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    rename(beside(path), path, table, set())


def read_manifest(table: Path) -> Manifest:
    """The manifest of a table's directory.

    Raises MissingTableError where there is none, CorruptTableError where it is not as luckbase
    wrote it.
    """
    path = table / NAME
    try:
        form = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise MissingTableError(f"{table}: no table here ({NAME} is missing)") from None
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptTableError(f"{path}: cannot be read: {str(error)[:100]}") from None
    if not isinstance(form, dict) or "checksum" not in form:
        raise CorruptTableError(f"{path}: is not a manifest: it has no checksum")
    said = form.pop("checksum")
    if said != _checksum(form):
        raise CorruptTableError(
            f"{path}: was changed after luckbase wrote it: its checksum does not match"
        )
    if form.get("format") != FORMAT:
        raise CorruptTableError(
            f"{path}: format {form.get('format')}; this luckbase reads format {FORMAT}"
        )
    if set(form) != {f.name for f in fields(Manifest)}:
        raise CorruptTableError(f"{path}: its keys are not those of format {FORMAT}")
    try:
        return _ADAPTER.validate_json(json.dumps(form), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise CorruptTableError(
            f"{path}: {where} is not what format {FORMAT} has there: {first['msg'][:80]}"
        ) from None


_ADAPTER: TypeAdapter[Manifest] = TypeAdapter(Manifest)
