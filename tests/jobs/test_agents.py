"""`evaluate`, `graph`, `diff` and `solve --from` on the command line."""

import re
import shutil

import pytest

import luckbase
from luckbase.cluster.play import draw
from tests.places import BOARDS
from tests.reference import jackpot as reference

JACKPOT, SMALL = str(BOARDS / "jackpot/seed.toml"), str(BOARDS / "jackpot/tiny.toml")
TINY = str(BOARDS / "press-your-luck/tiny.toml")


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", TINY, "--agents", "always-pass-ahead", "--games", "1000", "--json"],
        ["graph", TINY, "--agents", "always-pass-ahead"],
    ],
)
def test_fields_given_as_plain_arguments_are_the_start(command, words):
    start = ["scores=0,1000,500", "earned=0,2,0"]
    plain = command(words[0], words[1], *start, *words[2:])
    assert plain[0] == 0
    assert plain == command(*words, "--from", *start)
    assert plain == command(words[0], words[1], start[1], *words[2:], "--from", start[0])
    assert plain != command(words[0], words[1], start[0], "earned=0,1,0", *words[2:])


def test_graph_draws_the_seeds_two_variants(command, tmp_path):
    """jackpot-mike-french.txt: layer boxes; edges with moves and counts; layers 1, 9, 36, …"""
    path = tmp_path / "hilo.dot"
    words = ["graph", JACKPOT, "--agents", "hilo", "--layers", "--labels", "counts"]
    code, out, err = command(*words, "--all", "--out", str(path))
    assert code == 0 and out == "" and "512 positions" in err
    text = path.read_text()
    boxes = re.findall(r"subgraph cluster_\d+ \{(.*?)\n\t\}", text, re.DOTALL)
    sizes = [len(re.findall(r"^\t\t\d+ \[label", box, re.MULTILINE)) for box in boxes]
    assert sizes == [1, 9, 36, 84, 126, 126, 84, 36, 9, 1]
    code, out, _ = command(*words)
    assert code == 0 and out.count(" -> ") == text.count(" -> ")  # hilo comes everywhere
    start = re.search(r"^\t\t(\d+) \[label=\"open 1,2,3,4,5,6,7,8,9\\n", out, re.MULTILINE)
    assert start
    edges = re.findall(rf"^\t{start[1]} -> \d+ \[label=\"flip (\d)\\n(\d+)\"\]", out, re.MULTILINE)
    assert sum(int(count) for _, count in edges) == 36
    assert dict(edges)["9"] == "4"  # {3,6} {6,3} {4,5} {5,4}
    words[3] = "max"
    assert command(*words)[1].count(" -> ") < command(*words, "--all")[1].count(" -> ")


def test_a_position_that_comes_back_is_reached_more_than_once(command):
    """A coin in turns until heads: the first tosses 1 + 1/4 + … = 4/3 times, the other 2/3."""
    code, out, _ = command("graph", str(BOARDS / "pig/piglet.toml"), "--set", "goal=1")
    assert code == 0 and re.findall(r"reached ([\d.]+), worth", out) == ["1.333", "0.6667"]
    assert "its average number of visits in a game" in " ".join(command("graph", "-h")[1].split())


@pytest.mark.parametrize("name", reference.AGENTS)
def test_a_drawing_says_how_often_each_position_is_reached(name):
    """jackpot-mike-french.txt: every node stores the probability of reaching it."""
    right = reference.Reference().reach(reference.AGENTS[name])
    nodes = luckbase.graph(JACKPOT, name, every=True).diagram.nodes
    positions = {frozenset(node.fields["open"]): node.reach for node in nodes if node.fields}
    assert len(positions) == 511
    for tiles, reach in positions.items():
        assert reach == pytest.approx(float(right[tiles]), abs=1e-15)
    (won,) = (node.reach for node in nodes if node.end)
    assert won == pytest.approx(float(right[frozenset()]), abs=1e-15)


def test_a_picture_takes_graphviz(command, tmp_path):
    path = tmp_path / "x.svg"
    code, _, err = command("graph", SMALL, "--out", str(path))
    if shutil.which("dot"):
        assert code == 0 and "<svg" in path.read_text()
        return
    assert code == 2 and "GraphViz (its command dot) is not installed" in err
    assert not path.exists()


def test_a_drawing_that_nobody_can_read_is_refused(command, monkeypatch):
    monkeypatch.setattr(draw, "MAX_NODES", 10)  # no option; 20,000 nodes take seconds
    code, out, err = command("graph", JACKPOT)
    assert (code, out) == (2, "") and "cannot be read; expected at most 10; start nearer" in err
