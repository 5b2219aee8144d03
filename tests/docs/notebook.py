"""The example notebook: run as Jupyter runs it, cell by cell, and written with its outputs.

``python -m tests.docs.notebook`` writes docs/how-to/notebook.ipynb anew from `CELLS`; a test fails
when it is stale. No Jupyter is needed: a cell is Python whose last expression is shown, by
``_repr_html_`` or ``_repr_png_`` where it has one and else as text.
"""

import ast
import base64
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path

from tests.places import ROOT

PAGE = ROOT / "docs/how-to/notebook.ipynb"

CELLS = (
    "# A table in a notebook\n\nA board of *Press Your Luck* that is small enough to solve in a "
    "second. Run the cells in this order, in this folder of a checkout.",
    'import luckbase\n\nBOARDS, RESULTS = "../../boards", "../../results"\n'
    'board = luckbase.load_board(f"{BOARDS}/press-your-luck/tiny.toml", frontier=2)\n'
    'print(luckbase.solve(board, results=RESULTS).manifest.rows, "states")',
    "table = luckbase.open(board, results=RESULTS)\ntable",
    "A state drawn as the game looks, and what the table says of it: play or pass?",
    'state = "scores=0,1500,1000 earned=0,1,0"\ntable.scene(state)',
    "table[state]",
    "The payoffs of one action, and of another state, its fields as keywords:",
    'print(table[state]["play"])\nprint(table.ask(scores=(0, 1000, 1000), earned=(0, 1, 0)).best)',
    "Many states at once, as a frame. From how far ahead does player 2 pass?",
    "import pandas\n\nframe = pandas.DataFrame(\n"
    '    {"scores_1": 0, "scores_2": range(0, 3001, 500), "scores_3": 1000, "earned": "0,1,0"}\n)\n'
    'table.values(frame, best=True, margin=True)[["scores_2", "payoff_2", "best", "margin"]]',
    "All rows of the table of which something is true. Who passes with the smallest chance to win?",
    'rows = table.to_pandas("spins=1 earned_2=1 best!=play scores_2>0")\n'
    "least = rows.loc[rows.payoff_2.idxmin()]\ntable[least]",
    "Another game, solved in memory; its charts are pictures.",
    'skunk = luckbase.open(f"{BOARDS}/skunk/seed.toml", in_memory=True)\nskunk.chart("hold")',
    'skunk.chart(fields="mine=0 yours=67,86,87,88")',
    "The charts of a table:",
    "skunk.charts",
    "A chart as a frame, and as a file:",
    'skunk.chart("hold").save("hold.png")\nskunk.chart().to_pandas().head(3)',
    "Are the payoffs what the rules say? Every byte of the files, and a thousand rows computed "
    "again from the rules:",
    "table.verify(sample=1000)",
    "What if the player in third place may pass too? The same board with one rule changed:",
    'free = luckbase.open(\n    f"{BOARDS}/press-your-luck/tiny.toml", in_memory=True, frontier=2, '
    "third_place_spins=False\n)\ntable.diff(free, worst=3)",
    "To send all of it to somebody who has nothing installed:",
    'report = luckbase.report(table, sample=1000)\nreport.save("report.html")\n'
    "report.ok, report.charts",
)
"""Markdown, and code: what can be read as Python."""


def is_code(text):
    """Whether a cell is one of code."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return not text.startswith("#")


def run_cell(text, names, number):
    """Run a cell; its outputs as a notebook has them."""
    tree = ast.parse(text)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)
        if last is not None:
            assert isinstance(last, ast.Expr)
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    outputs = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream",
                        "text": printed.getvalue().splitlines(keepends=True)})  # fmt: skip
    if value is not None:
        outputs.append({"data": shown(value), "execution_count": number, "metadata": {},
                        "output_type": "execute_result"})  # fmt: skip
    return outputs


def shown(value):
    """What Jupyter asks of a value, by the kind of it."""
    result = {"text/plain": repr(value).splitlines(keepends=True)}
    html = getattr(value, "_repr_html_", lambda: None)()
    if html is not None:
        result["text/html"] = html.splitlines(keepends=True)
    png = getattr(value, "_repr_png_", lambda: None)()
    if png is not None:
        result["image/png"] = base64.b64encode(png).decode()
    return dict(sorted(result.items()))


def made(folder):
    """The notebook, run in a copy of its folder below `folder`."""
    home = folder / "docs/how-to"
    home.mkdir(parents=True)
    (folder / "boards").symlink_to(ROOT / "boards")
    before, names = Path.cwd(), {"__name__": "__main__"}
    os.chdir(home)
    cells, number = [], 0
    try:
        for i, text in enumerate(CELLS):
            cell = {"id": f"cell-{i}", "metadata": {},
                                    "source": text.splitlines(keepends=True)}  # fmt: skip
            if is_code(text):
                number += 1
                cell |= {"cell_type": "code", "execution_count": number,
                         "outputs": run_cell(text, names, number)}  # fmt: skip
            else:
                cell["cell_type"] = "markdown"
            cells.append(dict(sorted(cell.items())))
        table = names["table"]
        table.close()
    finally:
        os.chdir(before)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel,
            "language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}  # fmt: skip


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        text = json.dumps(made(Path(place)), indent=1, ensure_ascii=False)
    PAGE.write_text(text.replace(place, "…") + "\n", encoding="utf-8")
