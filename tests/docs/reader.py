"""A reader of tables, written from docs/reference/table-format.md alone: nothing of ours in it.

`Reader(folder)` checks the manifest; `find(columns)` gives the row of a state, or None. Every byte
that an answer comes from was checked.
"""

import hashlib
import io
import json
import math
import re
import zlib
from dataclasses import dataclass
from functools import cache
from itertools import product

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

NAME = re.compile(r"[A-Za-z0-9_.-]+\.parquet")


class RefusedError(Exception):
    """What a reader must refuse."""


@dataclass
class Row:
    """The row of a state; swapped: its payoffs are to be exchanged."""

    columns: dict
    error: float
    swapped: bool = False

    def list(self, name):
        """``payoff_1``, … in turn order."""
        result, i = [], 1
        while f"{name}_{i}" in self.columns:
            result.append(float(self.columns[f"{name}_{i}"]))
            i += 1
        return result[::-1] if self.swapped else result


def sha(text):
    return hashlib.sha256(text).hexdigest()


class Reader:
    """A table's folder, its manifest checked."""

    def __init__(self, folder):
        self.folder = folder
        where = folder / "manifest.json"
        if not where.is_file():
            raise RefusedError(f"{where}: is missing")
        body, result, check = where.read_text(encoding="utf-8").rpartition(',"check":"')
        if not result or check != f'{sha(body.encode())[:32]}"}}\n':
            raise RefusedError(f"{where}: its check does not match")
        self.head = json.loads(body + "}")
        if self.head["format"] != 5:
            raise RefusedError(f"{where}: format {self.head['format']}")
        rules = json.dumps(
            [self.head["rules"], self.head["rules_version"]], sort_keys=True, separators=(",", ":")
        )
        if not self.head["identity"] == sha(rules.encode("ascii"))[:12] == folder.name:
            raise RefusedError(f"{where}: its identity is not that of its rules")
        self.files, self.goals = {}, self.head["goals"]
        self.done = {done["ask"] for done in self.head["done"]}
        for entry in self.head["files"]:
            part, _, name = entry["name"].partition("/")
            if part != entry["part"] or not NAME.fullmatch(name):
                raise RefusedError(f"{where}: names a file outside the table")
            self.files[entry["name"]] = entry

    @property
    def complete(self):
        """Whether every goal is reached."""
        asks = [
            sha(json.dumps([g["part"], g["reach"], g["roots"]], sort_keys=True).encode())[:32]
            for g in self.goals
        ]
        return bool(asks) and all(ask in self.done for ask in asks)

    def parts(self):
        """The parts in the order in which a state is looked for."""
        names = {entry["part"] for entry in self.files.values()}
        return sorted(names, key=lambda name: (name != "tiers", name))

    def entries(self, part):
        """The files of a part."""
        return [entry for entry in self.files.values() if entry["part"] == part]

    # --- files ---------------------------------------------------------------------------------

    def footer(self, entry):
        """(metadata, where the row groups begin and the last one ends, checks) of a file."""
        path = self.folder / (entry["at"] or entry["name"])
        if not path.is_file() or path.stat().st_size != entry["bytes"]:
            raise RefusedError(f"{path}: is missing or of another size")
        with path.open("rb") as file:
            file.seek(entry["bytes"] - entry["footer"])
            footer = file.read()
        if sha(footer) != entry["footer_sha256"]:
            raise RefusedError(f"{path}: its footer does not match")
        about = pq.read_metadata(io.BytesIO(footer))
        starts, checks = zip(*json.loads(about.metadata[b"luckbase.row_groups"]), strict=True)
        return about, [*starts, entry["bytes"] - entry["footer"]], checks

    def group(self, entry, number):
        """A row group as a pyarrow table, its bytes checked."""
        path = self.folder / (entry["at"] or entry["name"])
        _, starts, checks = self.footer(entry)
        with path.open("rb") as file:
            file.seek(starts[number])
            content = file.read(starts[number + 1] - starts[number])
            if zlib.crc32(content) != checks[number]:
                raise RefusedError(f"{path}: row group {number + 1} does not match")
            return pq.ParquetFile(file).read_row_group(number)

    def groups(self, entry):
        """How many row groups a file has."""
        return len(self.footer(entry)[2])

    # --- states --------------------------------------------------------------------------------

    def error(self, part):
        """The largest error of a part."""
        return max(float(entry["error"]) for entry in self.entries(part))

    def find(self, columns):
        """(part, row) of a state by its key; None where it is not there."""
        for part in self.parts():
            result = self.in_tiers(columns) if part == "tiers" else self.in_search(part, columns)
            if result is not None:
                return part, result
        return None

    def in_tiers(self, columns):
        """The row of the full table, by tier and row."""
        state, swapped = GAMES[self.head["game"]][0](self.head["rules"], columns)
        place = GAMES[self.head["game"]][1](self.head["rules"], state)
        if place is None:
            return None
        key = (place[0] << 40) + place[1]
        for entry in self.entries("tiers"):
            if entry["rows"] and entry["first_key"] <= key <= entry["last_key"]:
                number, row = divmod(key - entry["first_key"], entry["row_group_rows"])
                read = self.group(entry, number).slice(row, 1).to_pylist()[0]
                return Row(read, self.error("tiers"), swapped)
        return None

    def in_search(self, part, columns):
        """The row of a search, by its key."""
        key = search_key(self.head, columns)
        for entry in self.entries(part):
            if not entry["rows"] or not entry["first_key"] <= key <= entry["last_key"]:
                continue
            about = self.footer(entry)[0]
            firsts = [about.row_group(i).column(0).statistics.min
                      for i in range(about.num_row_groups)]  # fmt: skip
            number = max(i for i, first in enumerate(firsts) if first <= key)
            read = self.group(entry, number)
            row = int(pc.index(read["key"], pa.scalar(key, pa.uint64())).as_py())
            if row >= 0:
                return Row(read.slice(row, 1).to_pylist()[0], self.error(part))
        return None

    def read_all(self):
        """Check every byte of every file; how many rows there are."""
        rows = 0
        for entry in self.files.values():
            rows += sum(len(self.group(entry, i)) for i in range(self.groups(entry)))
        return rows


# --- the games of the repository ---------------------------------------------------------------


def mask_of(text):
    """A set as a number."""
    return sum(1 << (int(k) - 1) for k in str(text).split())


def set_of(mask):
    """A set as text."""
    return " ".join(str(k + 1) for k in range(mask.bit_length()) if mask >> k & 1)


def pyl_canonical(rules, columns):
    most, result = rules["rules"]["max_whammies"], dict(columns)
    total = sum(columns[f"{kind}_{i}"] for kind in ("earned", "passed") for i in (1, 2, 3))
    for i in (1, 2, 3):
        if columns[f"whammies_{i}"] + total < most:
            result[f"whammies_{i}"] = 0
    return {**result, "spins": total}, False


@cache
def configurations(total, three):
    numbers = range(total, -1, -1)
    others = numbers if three else (0,)
    every = product(numbers, numbers, others, others, numbers, numbers)
    return {c: i for i, c in enumerate(c for c in every if sum(c) == total)}


def pyl_place(rules, state):
    most, unit = rules["rules"]["max_whammies"], rules["solve"]["score_unit"]
    n = rules["solve"]["score_cap"] // unit + 1
    whammies = [state[f"whammies_{i}"] for i in (1, 2, 3)]
    inside = [i + 1 for i, w in enumerate(whammies) if w < most]
    if state["spins"] == 0 or len(inside) < 2:
        return None
    three = len(inside) == 3
    a, b, c = inside if three else (inside[0], None, inside[1])
    stored = [(state[f"passed_{i}"], state[f"earned_{i}"]) if i else (0, 0) for i in (a, b, c)]
    orders = configurations(state["spins"], three)
    scores = [state[f"scores_{i}"] // unit if i else 0 for i in (a, b, c)]
    number = state["spins"]
    for w in whammies:
        number = number * (most + 1) + w
    at = orders[tuple(x for pair in stored for x in pair)]
    return number, ((scores[1] * n + scores[0]) * len(orders) + at) * n + scores[2]


def goofspiel_canonical(rules, columns):
    mine, theirs = mask_of(columns["mine"]), mask_of(columns["theirs"])
    ranks = [k for k in range(16) if (mine | theirs) >> k & 1]
    mine, theirs = (
        sum(1 << i for i, k in enumerate(ranks) if hand >> k & 1) for hand in (mine, theirs)
    )
    apart = (mine ^ theirs) & -(mine ^ theirs)
    swapped = bool(theirs & apart)
    if swapped:
        mine, theirs = theirs, mine
    result = {**columns, "mine": set_of(mine), "theirs": set_of(theirs)}
    if swapped and "lead" in columns:
        result["lead"] = -columns["lead"]
    return result, swapped


@cache
def patterns(size, ranks):
    """Number of each canonical pattern as its steps from below: 0 a tie, 1 mine, 2 theirs."""

    def paths(mine, theirs, remaining):
        if mine == theirs == 0:
            return [()]
        if remaining == 0:
            return []
        result = []
        for step, (x, y) in enumerate(((1, 1), (1, 0), (0, 1))):
            if mine >= x and theirs >= y:
                result += [(step, *rest) for rest in paths(mine - x, theirs - y, remaining - 1)]
        return result

    every = [(0,) * size]
    for ties in range(size):
        rest = paths(size - ties - 1, size - ties, ranks - ties - 1)
        every += [(0,) * ties + (1, *path) for path in rest]
    return {pattern: i for i, pattern in enumerate(every)}


def points(deck):
    return sum(k + 1 for k in range(deck.bit_length()) if deck >> k & 1)


def goofspiel_place(rules, state):
    cards, win = rules["rules"]["cards"], rules["rules"]["objective"] == "win"
    mine, theirs, deck = (mask_of(state[name]) for name in ("mine", "theirs", "deck"))
    size, lead = mine.bit_count(), state.get("lead", 0)
    if size == 0 or state.get("upcard") or (win and abs(lead) > points(deck)):
        return None
    steps = tuple(
        {(1, 1): 0, (1, 0): 1, (0, 1): 2}[mine >> k & 1, theirs >> k & 1]
        for k in range((mine | theirs).bit_length())
    )
    width, column = 0, -1
    for other in range(1 << cards):
        if other.bit_count() == size:
            reach = min(points(other), cards * (cards + 1) // 2 - points(other)) if win else 0
            if other == deck:
                if abs(lead) > reach:
                    return None
                column = width + reach + lead
            width += 2 * reach + 1
    return size, patterns(size, cards)[steps] * width + column


def as_asked(rules, columns):
    return columns, False


def skunk_place(rules, state):
    goal = rules["rules"]["goal"]
    mine, yours, turn, player = (state[name] for name in ("mine", "yours", "turn", "player"))
    if mine + turn >= goal or yours >= goal:
        return None
    row = sum(goal * (goal - m) for m in range(goal)) * (player - 1)
    return 0, row + sum(goal * (goal - m) for m in range(mine)) + yours * (goal - mine) + turn


def rounds_canonical(rules, columns):
    lower = min(columns["mine"], columns["yours"])
    return columns | {name: columns[name] - lower for name in ("mine", "yours")}, False


def rounds_place(rules, state):
    cut, lead, turn = rules["solve"]["cut"], state["mine"] - state["yours"], state["turn"]
    if state["round"] > rules["rules"]["rounds"] or lead + turn >= cut or lead <= -cut:
        return None
    row = sum(cut - d for d in range(1 - cut, lead)) + turn
    return 2 * state["round"] + state["player"] - 3, row


GAMES = {
    "press-your-luck": (pyl_canonical, pyl_place),
    "goofspiel": (goofspiel_canonical, goofspiel_place),
    "skunk": (as_asked, skunk_place), "pig": (as_asked, skunk_place),
    "pig-rounds": (rounds_canonical, rounds_place),
    "jackpot": (as_asked, lambda rules, state: None),
}  # fmt: skip


def key_fields(head):
    """(column, room) of a search's key, the highest first."""
    if head["game"] == "press-your-luck":
        return pyl_rooms(head["rules"])
    return [(name, 1 << bits) for name, bits in _bits(head)]


def pyl_rooms(form):
    """Of a board without choices."""
    players, units = form["rules"].get("players", 3), form["solve"]["score_cap"]
    units //= form["solve"]["score_unit"]
    rooms = [1 << max(8, units.bit_length()), 32, 32, 8]
    if math.prod(rooms) ** players > 1 << 64:
        whammies, spins = form["rules"]["max_whammies"], 31
        while ((units + 1) * (spins + 1) ** 2 * (whammies + 1)) ** players > 1 << 64:
            spins -= 1
        rooms = [units + 1, spins + 1, spins + 1, whammies + 1]
    names = zip(("scores", "earned", "passed", "whammies"), rooms, strict=True)
    return [(f"{name}_{i + 1}", room) for name, room in names for i in range(players)]


def _bits(head):
    game, rules = head["game"], head["rules"]["rules"]
    if game == "goofspiel":
        result = [(name, rules["cards"]) for name in ("mine", "theirs", "deck")] + [("upcard", 5)]
        return result + [("lead", 9)] * (rules["objective"] == "win")
    if game in ("skunk", "pig"):
        wide = rules["goal"].bit_length()
        result = [("mine", wide), ("yours", wide), ("turn", wide), ("player", 2)]
        return result + [("rolls", wide)] * rules["count_rolls"]
    if game == "pig-rounds":
        cut, turn = head["rules"]["solve"]["cut"].bit_length(), 2 * head["rules"]["solve"]["cut"]
        result = [("mine", cut), ("yours", cut), ("turn", turn.bit_length())]
        result += [("round", (rules["rounds"] + 1).bit_length()), ("player", 2)]
        return result + [("rolls", turn.bit_length())] * rules["count_rolls"]
    assert game == "jackpot"
    dice = rules["dice"]
    names = ["dice"] if dice == 1 else [f"dice_{i + 1}" for i in range(dice)]
    return [("open", rules["tiles"]), *((name, rules["sides"].bit_length()) for name in names)]


def search_key(head, columns):
    """The key of a canonical state, given by its columns, in a search of one of our games."""
    state = columns
    if head["game"] in ("press-your-luck", "pig-rounds"):
        state, _ = GAMES[head["game"]][0](head["rules"], columns)
    key = 0
    for name, room in key_fields(head):
        value = state.get(name, 0)
        if name in ("mine", "theirs", "deck", "open") and head["game"] in ("goofspiel", "jackpot"):
            value = mask_of(value)
        if name == "lead":
            cards = head["rules"]["rules"]["cards"]
            value += cards * (cards + 1) // 2
        if name.startswith("scores"):
            value //= head["rules"]["solve"]["score_unit"]
        key = key * room + value
    return key
