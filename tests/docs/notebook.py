"""The example notebook: run as Jupyter runs it, cell by cell, and written with its outputs.

``python -m tests.docs.notebook`` runs docs/how-to/notebook.ipynb and writes what its cells show; a
test fails when that is stale. No Jupyter is needed: a cell is Python whose last expression is
shown, by ``_repr_html_`` or ``_repr_png_`` where it has one and else as text.
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
    page, number = json.loads(PAGE.read_text(encoding="utf-8")), 0
    try:
        for cell in page["cells"]:
            if cell["cell_type"] == "code":
                number += 1
                cell["execution_count"] = number
                cell["outputs"] = run_cell("".join(cell["source"]), names, number)
        table = names["table"]
        table.close()
    finally:
        os.chdir(before)
    return page


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        text = json.dumps(made(Path(place)), indent=1, ensure_ascii=False)
    PAGE.write_text(text.replace(place, "…") + "\n", encoding="utf-8")
