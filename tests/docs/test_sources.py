"""Comments name their sources: pages that this repository has, by anchors that exist. The files of
docs/cluster have their form, and what they say of this repository; none of them is run here."""

import copy
import json
import re
import shlex
import tomllib
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import pytest
import yaml

from luckbase.jobs.app import run
from tests.places import ROOT, product_files
from tests.test_words import strings

ELSEWHERE = re.compile(
    r"(?i:games?'?s?'?[ _]pages?\b|\bthe[ _]seed('s|s)?\b(?!\.))|\bDESIGN\b"
    r"|shared/(games|seeds|boards)"
)
"""What only those who wrote this house have seen."""
HERE = Path(__file__)


def texts():
    """Every text that we wrote."""
    result = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    for folder in ("solver", "cluster", "jobs", "luckbase", "tests", "boards", "docs", "results"):
        for ending in ("py", "toml", "md"):
            result += (ROOT / folder).rglob(f"*.{ending}")
    return [path for path in result if path.is_file() and path != HERE]


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_no_comment_refers_to_a_page_that_the_repository_does_not_have():
    there = texts()
    assert len(there) > 200
    for path in there:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            assert not ELSEWHERE.search(line), f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


def test_every_source_that_is_named_exists():
    known = anchors(ROOT / "docs/numbers.md")
    named = 0
    for path in texts():
        for anchor in re.findall(r"numbers\.md#([\w-]+)", path.read_text(encoding="utf-8")):
            named += 1
            assert anchor in known, f"{path.relative_to(ROOT)}: #{anchor}"
    assert named >= 25


MISTAKES = ROOT / "docs/how-to/troubleshooting.md"


def test_every_sentence_of_the_page_stands_in_the_code():
    code, quoted = "\n".join(text for path in product_files() for _, text in strings(path)), 0
    for row in re.findall(r"^\| (`.*?) \|", MISTAKES.read_text(encoding="utf-8"), re.MULTILINE):
        for sentence in re.findall(r"`([^`]+)`", row):
            for piece in re.split(r"…|\.\.\.", sentence):
                words = piece.strip(" ;:,()")
                if len(words) > 3:
                    quoted += 1
                    assert words in code, f"no such sentence any more: {words}"
    assert quoted > 40


# --- drawn charts are what the commands beside them draw ------------------------------------------

CHARTS = ROOT / "docs/how-to/charts.md"
COMMANDS = re.findall(
    r"^luckbase (chart press-your-luck/.*) --out (press-your-luck-.*\.png)$",
    CHARTS.read_text(encoding="utf-8"),
    re.MULTILINE,
)
SOLVES = re.findall(
    r"^luckbase (solve press-your-luck/.*)$", CHARTS.read_text(encoding="utf-8"), re.MULTILINE
)


def test_every_drawn_chart_of_the_page_has_its_command():
    shown = set(re.findall(r"pictures/(press-your-luck-.*?\.png)", CHARTS.read_text("utf-8")))
    assert shown == {name for _, name in COMMANDS} and len(shown) == 2
    assert all((ROOT / "docs/pictures" / name).stat().st_size < 400_000 for name in shown)


@pytest.mark.slow
def test_drawn_charts_are_those_of_the_whole_table(tmp_path):
    """42.9 million states; the bytes are those of the version of vl-convert in constraints.txt."""
    results = ["--results", str(tmp_path / "results")]
    for words in SOLVES:
        assert run([*shlex.split(words), *results]) == 0
    for words, name in COMMANDS:
        assert run([*shlex.split(words), "--out", str(tmp_path / name), *results]) == 0
        assert (tmp_path / name).read_bytes() == (ROOT / "docs/pictures" / name).read_bytes()


FOLDER = ROOT / "docs/cluster"
RAYJOB = json.loads((Path(__file__).parent / "rayjob.schema.json").read_text())
RAY = Path(next(iter(find_spec("ray").submodule_search_locations)))
RAY_UP = json.loads((RAY / "autoscaler/ray-schema.json").read_text())


def rayjob():
    """The `RayJob`, without the volume behind it."""
    job, volume = yaml.safe_load_all((FOLDER / "rayjob.yaml").read_text())
    mounts = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["volumes"]
    assert volume["kind"] == "PersistentVolumeClaim"
    assert mounts[0]["persistentVolumeClaim"]["claimName"] == volume["metadata"]["name"]
    return job


def ray_up():
    return yaml.safe_load((FOLDER / "ray-up.yaml").read_text())


def test_both_files_have_the_forms_that_kuberay_and_ray_publish_and_a_slip_does_not():
    job, text = rayjob(), ray_up()
    jsonschema.validate(job, RAYJOB)
    jsonschema.validate(text, RAY_UP)
    assert text["head_node_type"] in text["available_node_types"]
    slip = copy.deepcopy(job)
    slip["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["replica"] = 4
    for wrong, form in ((slip, RAYJOB), ({**text, "max_worker": 4}, RAY_UP)):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, form)


def test_both_take_a_token_and_the_image_of_this_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    image, cluster = f"registry.example.com/luckbase:{version}", rayjob()["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    images = [each["template"]["spec"]["containers"][0]["image"] for each in groups]
    assert {*images, ray_up()["docker"]["image"]} == {image}
    assert image in (FOLDER / "Dockerfile").read_text()
    assert cluster["authOptions"] == {"mode": "token"}
    assert "--env RAY_AUTH_MODE=token" in ray_up()["docker"]["run_options"]
    assert "/home/ray/.ray/auth_token" in ray_up()["file_mounts"]
    locked = re.findall(r"^ray==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert locked == [cluster["rayVersion"]]


def test_what_the_rayjob_starts_is_a_solve_of_a_board_that_luckbase_brings(tmp_path, capsys):
    program, *words = shlex.split(rayjob()["spec"]["entrypoint"])
    assert program == "luckbase" and words[-4:] == ["--address", "auto", "--results", "/results"]
    assert run([*words[:-4], "--results", str(tmp_path), "--dry-run"]) == 0
    assert "1985-02" in capsys.readouterr().out


def test_the_image_holds_all_that_the_package_is_made_of():
    text = (FOLDER / "Dockerfile").read_text()
    copied = {
        word for line in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE) for word in line.split()
    }
    assert all((ROOT / name).exists() for name in copied)
    linked = {link.resolve().name for link in (ROOT / "luckbase").iterdir() if link.is_symlink()}
    assert (
        linked | {"luckbase", "pyproject.toml", "README.md", "LICENSE", "constraints.txt"} == copied
    )
