"""Scenes of states (`solver.scene.Scene`) as SVG.

An element has no style, script or id, so a page can have any number of them under the strictest
policy. Lines and text use the page's colour, so they are readable on any background and in grey;
classes (``s-card``, ``s-up``, …) are for tints (`STYLE`).
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from luckbase.solver.scene import Box, Counter, Die, Group, Scene, Shape, Words

STYLE = Path(__file__).parent / "static" / "scene.css"
"""The tints for both themes. Pages link to it; a single-file page contains it."""

ROUND = {"card": 7.0, "tile": 3.0, "square": 4.0, "slide": 3.0, "desk": 9.0, "track": 5.0,
         "bar": 4.0, "plate": 5.0, "light": 4.0}  # fmt: skip
"""Corner radius of a box, in units."""
LOOKS = {
    "": 'stroke-width="1.1"',
    "up": 'stroke-width="3"',
    "gone": 'stroke-width="1" stroke-dasharray="3 3" opacity=".65"',
    "good": 'stroke-width="1.6"',
    "bad": 'stroke-width="2.4"',
    "chance": 'stroke-width="1.5" stroke-dasharray="2 2"',
    "quiet": 'stroke-width=".6"',
}
"""The appearance of roles without colours."""
PIPS = {1: "4", 2: "08", 3: "048", 4: "0268", 5: "02468", 6: "023568", 7: "0234568", 8: "01235678",
        9: "012345678"}  # fmt: skip
"""Positions of a face's pips, in three rows of three."""
LETTER = 0.35
"""Distance from the middle of a letter to its baseline, as a share of its size."""


def svg(scene: Scene, parts: bool = True) -> str:
    """Return the scene as an ``<svg>`` element that is as wide as its container allows. parts: if
    False, draw only the backdrop, for a page with a form in place of the parts."""
    title, text = escape(scene.title), escape(scene.about)
    inner, high = "".join(map(drawn, (scene.backdrop, *scene.parts))), scene.high
    if not parts:
        inner = drawn(scene.backdrop)
        high = scene.high if around(scene) else max(map(_bottom, _boxes(scene.backdrop)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="scene" role="img" aria-label="{title}. '
        f'{text}" viewBox="0 0 {scene.wide:g} {high:g}" fill="none" stroke="currentColor" '
        f'font-family="system-ui, sans-serif"><title>{title}</title><desc>{text}</desc>'
        f"{inner}</svg>"
    )


def around(scene: Scene) -> bool:
    """True if the backdrop of a scene surrounds its parts, as a board surrounds desks."""
    bottoms, tops = map(_bottom, _boxes(scene.backdrop)), (box.y for box in _boxes(*scene.parts))
    return max(bottoms, default=0.0) > min(tops, default=0.0)


def _boxes(*shapes: Shape | Group) -> Iterator[Box]:
    for shape in shapes:
        if isinstance(shape, Group):
            yield from _boxes(*shape.shapes)
        elif isinstance(shape, Box):
            yield shape


def _bottom(box: Box) -> float:
    return box.y + box.high + 2


def as_html(scene: Scene) -> str:
    """Return the scene with its tints, for a notebook."""
    style = f"<style>{STYLE.read_text(encoding='utf-8')}</style>"
    return f'{style}<div style="max-width: 44rem">{svg(scene)}</div>'


def drawn(shape: Shape | Group) -> str:
    """Return a shape or group as SVG."""
    match shape:
        case Group():
            return "".join(map(drawn, shape.shapes))
        case Box():
            return _box(shape)
        case Counter():
            circle = f'<circle cx="{shape.x:g}" cy="{shape.y:g}" r="{shape.radius:g}"/>'
            size = shape.radius * (1.25 if len(shape.word) < 2 else 0.9)
            word = _text(shape.word, shape.x, shape.y, size) if shape.word else ""
            return _group("counter", shape.role, shape.about, circle + word)
        case Die():
            kind = "before the roll" if shape.face is None else f"that shows {shape.face}"
            return _group("die", shape.role, f"a die {kind}", _die(shape))
        case Words():
            classes = f"s-words s-{shape.role}" if shape.role else "s-words"
            faint = ' opacity=".7"' if shape.role in ("quiet", "gone") else ""
            return _text(shape.text, shape.x, shape.y, shape.size, shape.at, shape.bold, classes,
                         faint)  # fmt: skip


def _group(kind: str, role: str, description: str, inner: str, data: str = "") -> str:
    classes = f"s-{kind} s-{role}" if role else f"s-{kind}"
    title = f"<title>{escape(description)}</title>" if description else ""
    return f'<g class="{classes}"{data} {LOOKS[role]}>{title}{inner}</g>'


def _box(box: Box) -> str:
    edge = _rectangle(box.x, box.y, max(box.wide, 0), box.high, ROUND[box.kind])
    step, middle = box.size * 1.25, box.x + box.wide / 2
    first = box.y + box.high / 2 - step * (len(box.lines) - 1) / 2
    lines = "".join(
        _text(line, middle, first + i * step, box.size) for i, line in enumerate(box.lines)
    )
    data = ""
    if box.field:
        data = f' data-field="{escape(box.field)}" data-value="{escape(box.value)}"'
    return _group(box.kind, box.role, box.about, edge + lines, data)


def _die(die: Die) -> str:
    middle, step, radius = die.wide / 2, die.wide * 0.26, die.wide * 0.085
    x, y = die.x + middle, die.y + middle
    edge = _rectangle(die.x, die.y, die.wide, die.wide, die.wide / 6)
    if die.face not in PIPS or die.sides > 9:
        return edge + _text("?" if die.face is None else str(die.face), x, y, middle)
    return edge + "".join(
        f'<circle class="s-pip" cx="{x + (int(p) % 3 - 1) * step:g}" '
        f'cy="{y + (int(p) // 3 - 1) * step:g}" r="{radius:g}" fill="currentColor" stroke="none"/>'
        for p in PIPS[die.face]
    )


def _rectangle(x: float, y: float, width: float, height: float, round_: float) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_:g}"/>'


def _text(
    text: str, x: float, y: float, size: float, at: str = "middle", bold: bool = False,
    classes: str = "", more: str = "",
) -> str:  # fmt: skip
    kind = f' class="{classes}"' if classes else ""
    weight = ' font-weight="700"' if bold else ""
    return (
        f'<text{kind} x="{x:g}" y="{y + LETTER * size:g}" font-size="{size:g}" '
        f'text-anchor="{at}" fill="currentColor" stroke="none"{weight}{more}>{escape(text)}</text>'
    )
