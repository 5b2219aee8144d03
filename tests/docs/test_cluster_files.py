"""The files of docs/cluster: their form, and what they say of this repository. None of them is run
here."""

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
from tests.places import ROOT

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
