"""The address of a cluster: one sentence says why nobody can join; old tables answer."""

import os
import socket

import pytest

from luckbase.cluster.solve import ray
from luckbase.solver.errors import OptionError
from tests import solving
from tests.places import BOARDS
from tests.shared import python
from tests.solving import load_board

TINY = BOARDS / "press-your-luck/tiny.toml"


def test_a_cluster_that_does_not_answer_in_time_is_a_sentence(monkeypatch, capfd):
    monkeypatch.setattr(ray, "CONNECT_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(OptionError, match=f"cluster at {address} has not answered for 1 s; is"):
            ray.check_address(address)
    assert capfd.readouterr() == ("", "")


def test_a_node_with_another_version_is_named_before_anything_is_solved(
    tmp_path, ray_cluster, monkeypatch
):
    created = ray.nodes.versions()
    monkeypatch.setattr(ray.nodes, "versions", lambda: {**created, "numba": "0.1"})
    with pytest.raises(OptionError, match=r"address: node \S+ \(\S+\) has numba \S+, not 0.1$"):
        solving.solve_board(load_board(TINY), results=tmp_path, address=ray_cluster)
    assert not list(tmp_path.rglob("*.parquet"))


def test_the_old_table_answers_if_the_cluster_does_not(tmp_path, table_of):
    """Nor does an old address in RAY_ADDRESS matter, with which Ray would replace ``auto``."""
    table = table_of(TINY, frontier=2)
    results, name = table.parents[2], str(TINY)
    words = ["-m", "luckbase", "solve", name, "--set", "frontier=2", "--results", results]
    env = {**os.environ, "RAY_ADDRESS": "nowhere"}
    done = python(*words, "--force", "--address", "auto", env=env, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "--address: the Ray cluster at auto does not answer" in done.stderr
    assert python(*words, "--address", "auto", env=env, check=False).returncode == 0  # complete
    query = "scores=0,1000,500", "earned=0,1,0"
    answer = python("-m", "luckbase", "query", table, *query, check=False)
    assert answer.returncode == 0 and "play" in answer.stdout, answer.stderr
