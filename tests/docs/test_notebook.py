"""The example notebook does what it shows (`tests.docs.notebook`)."""

import base64
import json

import pytest

from tests.docs.notebook import PAGE, made


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
                    "the notebook is stale: python -m tests.docs.notebook"
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
