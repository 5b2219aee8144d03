"""Results as JSON: the fields in their order."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest
from pydantic import Field, PlainSerializer

from luckbase.solver.result import (
    Array2,
    Flat,
    IfAny,
    Number,
    OrNull,
    PythonOnly,
    Result,
    Rounded,
    WholeNumbers,
)


@dataclass(frozen=True)
class Inner(Result):
    """Stands in the place of a field."""

    board: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outer(Result):
    """One of each kind of field."""

    first: int
    inner: Flat[Inner]
    name: Annotated[str, Field(serialization_alias="action")]
    pair: Flat[Annotated[str, PlainSerializer(lambda text: Inner(text), return_type=Inner)]]
    where: Path = Path("x")
    weight: Number = 1
    none: str | None = None
    missing: IfAny[tuple[float, ...]] = None
    hidden: PythonOnly[object] = None
    text: OrNull[str] = ""
    seconds: Rounded = 1.26


@pytest.mark.parametrize("kind", [tuple, list])
def test_the_fields_are_the_json_in_their_order(kind):
    inner = Inner("pig", {"a": (1, 2)})
    created = Outer(3, inner, "roll", "tiny", missing=kind([1e-5]), hidden=object())
    assert json.dumps(created.as_json()) == (
        '{"first": 3, "board": "tiny", "options": {}, "action": "roll", "where": "x", '
        '"weight": 1, "none": null, "missing": [1e-05], "text": null, "seconds": 1.3}'
    )


@dataclass(frozen=True, eq=False)
class Ordered(Result):
    """In another order than in Python, with arrays."""

    values: Array2[np.ndarray]
    counts: WholeNumbers[np.ndarray]
    kind: IfAny[str] = None

    json_order: ClassVar = ("kind", "counts", "values")


def test_an_order_of_its_own_is_that_of_the_json():
    values, counts = np.array([[0.5, np.nan], [1, np.inf]]), np.arange(2)
    for kind, text in ((None, "{"), ("x", '{"kind": "x", ')):
        full = Ordered(values, counts, kind).as_json()
        assert json.dumps(full) == text + '"counts": [0, 1], "values": [[0.5, null], [1.0, null]]}'


def test_what_is_none_is_left_out_and_numbers_of_numpy_and_names_that_are_no_text_are_written():
    strange = Path(os.fsdecode(b"pig\xff"))
    inner = Inner(str(strange))
    text = Outer(3, inner, "roll", "x", strange, np.float64(0.1), text="x").as_json()
    assert "missing" not in text and text["text"] == "x"
    assert json.dumps([text["weight"], text["where"]]) == '[0.1, "pig\\udcff"]'
