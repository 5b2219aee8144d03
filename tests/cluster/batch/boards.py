"""Small boards in a folder of somebody's."""

from tests.places import BOARDS

JACKPOT = (BOARDS / "jackpot/tiny.toml").read_text(encoding="utf-8")
PIG = (BOARDS / "pig/tiny.toml").read_text(encoding="utf-8")
PYL = (BOARDS / "press-your-luck/tiny.toml").read_text(encoding="utf-8")


GRIDS = """
[[grid]]
score_unit = 500
frontier = 1
decisions = 2
[[grid]]
score_unit = 1000
frontier = 3
"""
"""Two grids of one board."""


def pig(goal=10):
    """Pig to so many points: a full table of one file."""
    assert "goal = 20" in PIG
    return PIG.replace("goal = 20", f"goal = {goal}")


def press(frontier=1, cap=1000, whammies=4):
    """Press Your Luck with three scores."""
    text = PYL.replace("frontier = 3", f"frontier = {frontier}")
    text = text.replace("score_cap = 3000", f"score_cap = {cap}")
    return text.replace("max_whammies = 4", f"max_whammies = {whammies}")


def put(path, text):
    """Write a file, with its folder; returns its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def everything(folder):
    """Every file below a folder: size and time of its last change."""
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def grid_text(grids=GRIDS):
    """Press Your Luck on two grids, out at two whammies. Each amount is on both."""
    lines = [line for line in PYL.splitlines() if not line.startswith(("score_unit", "frontier"))]
    text = "\n".join(lines).replace('"500', '"1000')
    text = text.replace("max_whammies = 4", "max_whammies = 2")
    return text.replace("score_cap = 3000", "score_cap = 4000") + grids
