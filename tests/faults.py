"""Put small faults into the product, one at a time, and see whether the tests notice.

``python -m tests.faults [--seed N] [AREA …]`` changes one comparison, sign, number or condition in
a copy of the checkout, at a random place of an area, and runs that area's tests until one fails. It
prints a line for each fault, and how many were noticed. Thirty take about an hour.
"""

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
AREAS = {
    "kernels": ("solver/games/*/kernel.py solver/games/*/full_table.py", "tests/solver/games", 5),
    "schedule": (
        "cluster/solve/schedule.py",
        "tests/cluster/solve/test_schedule.py tests/cluster/solve/test_driver.py", 3,
    ),
    "manifest": (
        "cluster/store/manifest.py cluster/store/writer.py",
        "tests/cluster/store/test_manifest.py tests/cluster/store/test_writer.py", 4,
    ),
    "lookup": (
        "cluster/answers/lookup.py cluster/answers/part_kinds.py",
        "tests/cluster/answers tests/cluster/solve/test_decisions.py", 4,
    ),
    "search": (
        "solver/search/game_graph.py solver/search/expand.py solver/search/stage*.py",
        "tests/solver/search tests/cluster/search", 4,
    ),
    "cycles": (
        "solver/search/cycles.py solver/search/elimination.py solver/search/policies.py",
        "tests/solver/search", 4,
    ),
    "parser": (
        "solver/game/fields.py solver/board/*.py",
        "tests/solver/game tests/solver/board tests/solver/search/test_keys.py "
        "tests/test_refusals.py", 3,
    ),
    "pages": ("jobs/web/*.py", "tests/jobs/web/test_api.py tests/jobs/web", 3),
}  # fmt: skip
"""Area: its modules, its tests, and how many faults it gets."""
OTHER = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+",
    "*": "+", "//": "*", "and": "or", "or": "and", "True": "False", "False": "True",
}  # fmt: skip
SECONDS = 900


def operator(left, right, lines):
    """The place of the operator between two nodes on one line, with its replacement."""
    if left.end_lineno == right.lineno:
        part = lines[right.lineno - 1][left.end_col_offset : right.col_offset]
        found = re.match(r"[\s)]*(<=|>=|==|!=|//|and|or|[-+*<>])[\s(]", part + " ")
        if found and found[1] in OTHER:
            yield right.lineno, left.end_col_offset + found.start(1), found[1], OTHER[found[1]]


def places(text):
    """Each possible fault of a module: line, column, old and new text. Only functions count: the
    numbers of modules are mostly sizes of caches."""
    tree, lines = ast.parse(text), text.splitlines()
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    result = set()
    for node in (each for one in functions for line in one.body for each in ast.walk(line)):
        if isinstance(node, ast.BinOp):
            result.update(operator(node.left, node.right, lines))
        elif isinstance(node, ast.Compare):
            result.update(operator(node.left, node.comparators[0], lines))
        elif isinstance(node, ast.BoolOp):
            result.update(operator(*node.values[:2], lines))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            old = lines[node.lineno - 1][node.col_offset : node.end_col_offset]
            result.add((node.lineno, node.col_offset, old, OTHER.get(old) or str(node.value + 1)))
    return sorted(result)


def faults(area, seed):
    """Random faults of an area: path, place."""
    patterns, _, count = AREAS[area]
    paths = sorted(path for pattern in patterns.split() for path in ROOT.glob(pattern))
    every = [
        (path.relative_to(ROOT), *place) for path in paths for place in places(path.read_text())
    ]
    return random.Random(f"{area} {seed}").sample(every, count)


def noticed(area, path, line, column, old, new, copy):
    """The first test that fails with a fault; None if all pass."""
    lines = (ROOT / path).read_text().splitlines(keepends=True)
    text = lines[line - 1]
    assert text[column:].startswith(old)
    lines[line - 1] = text[:column] + new + text[column + len(old) :]
    print(f"{area:9} {path}:{line}: {text.strip()}  →  {lines[line - 1].strip()}", flush=True)
    (copy / path).write_text("".join(lines))
    command = [sys.executable, "-m", "pytest", "-n0", "-qx", "--tb=no", "-p", "no:cacheprovider"]
    try:
        run = subprocess.run(
            [*command, *AREAS[area][1].split()],
            cwd=copy, capture_output=True, text=True, timeout=SECONDS, check=False,
            env={**os.environ, "PYTHONPATH": str(copy)},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no end after {SECONDS} seconds"
    finally:
        (copy / path).write_text((ROOT / path).read_text())
    failed = re.search(r"^(FAILED|ERROR) (.*)", run.stdout, re.MULTILINE)
    return failed[2] if failed else None if run.returncode == 0 else run.stderr[-200:] or "ended"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("areas", nargs="*", default=list(AREAS))
    options = parser.parse_args()
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "luckbase"
        shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(".*", "results"))
        for area in options.areas:
            for fault in faults(area, options.seed):
                test = noticed(area, *fault, copy)
                print(f"          {f'noticed: {test}' if test else 'NOT NOTICED'}", flush=True)
                seen.append(bool(test))
    print(f"{sum(seen)} of {len(seen)} noticed")


if __name__ == "__main__":
    main()
