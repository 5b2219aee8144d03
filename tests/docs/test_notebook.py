"""The example notebook: run as Jupyter runs it, cell by cell, and written with its outputs.

``python -m tests.docs.test_notebook`` runs docs/how-to/notebook.ipynb and writes what its cells
show; a test fails when that is stale. No Jupyter is needed: a cell is Python whose last expression
is shown, by ``_repr_html_`` or ``_repr_png_`` where it has one and else as text.
"""

import ast
import base64
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path

import pytest

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


@pytest.fixture(scope="module")
def kept():
    return json.loads(PAGE.read_text(encoding="utf-8"))


def test_the_notebook_prints_and_shows_what_it_says(kept, tmp_path):
    """But for a picture's bytes, which are those of one version of vl-convert, and what other
    packages (pandas) show."""
    now = made(tmp_path)
    for old, new in zip(kept["cells"], now["cells"], strict=True):
        if "pandas" in "".join(new["source"]):
            continue
        for was, result in zip(old.get("outputs", []), new.get("outputs", []), strict=True):
            data = result.get("data", {})
            assert set(was.get("data", {})) == set(data), new["source"]
            assert was.get("text") == result.get("text")
            for kind in data if set(data) == {"text/plain"} else {"text/html"} & set(data):
                assert was["data"][kind] == data[kind], (
                    "the notebook is stale: python -m tests.docs.test_notebook"
                )
            if "image/png" in data:
                old_png, new_png = (base64.b64decode(o["data"]["image/png"]) for o in (was, result))
                assert old_png[:24] == new_png[:24]  # a PNG of the same size
    assert (tmp_path / "docs/how-to/report.html").is_file()


def test_every_kind_of_output_is_in_it(kept):
    kinds = {kind for cell in kept["cells"] for output in cell.get("outputs", [])
             for kind in output.get("data", {"stream": 0})}  # fmt: skip
    assert kinds == {"image/png", "text/html", "text/plain", "stream"}
    assert PAGE.stat().st_size < 400_000


def test_it_is_a_notebook_as_jupyter_reads_it(kept):
    """The rules of nbformat 4.5 that hold here."""
    assert (kept["nbformat"], kept["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in kept["cells"]]
    assert len(set(ids)) == len(ids) > 20
    for cell in kept["cells"]:
        assert {"id", "cell_type", "metadata", "source"} <= set(cell)
        assert (cell["cell_type"] == "code") == ("outputs" in cell) == ("execution_count" in cell)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        text = json.dumps(made(Path(place)), indent=1, ensure_ascii=False)
    PAGE.write_text(text.replace(place, "…") + "\n", encoding="utf-8")
