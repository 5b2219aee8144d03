"""The address of a cluster: one sentence says why nobody can join; old tables answer."""

import socket

import pytest

from luckbase.cluster.solve import ray
from luckbase.solver.errors import OptionError, WorkerError
from tests import solving
from tests.places import TINY
from tests.solving import load_board


def test_a_cluster_that_does_not_answer_in_time_is_a_sentence(monkeypatch, capfd):
    monkeypatch.setattr(ray, "CONNECT_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(OptionError, match=f"cluster at {address} has not answered for 1 s; is"):
            ray.check_address(address)
    assert capfd.readouterr() == ("", "")


def test_a_node_with_another_version_is_named_before_it_solves_anything(
    tmp_path, ray_cluster, monkeypatch
):
    created = ray.nodes.versions()
    monkeypatch.setattr(ray.nodes, "versions", lambda: {**created, "numba": "0.1"})
    with pytest.raises(WorkerError, match=r"^node \S+ has numba \S+, not 0\.1; the solved parts"):
        solving.solve_board(load_board(TINY), results=tmp_path, address=ray_cluster)
    assert not list(tmp_path.rglob("*.parquet"))


def test_the_old_table_answers_if_the_cluster_does_not(table_of, command, monkeypatch):
    """Nor does an old address in RAY_ADDRESS matter, with which Ray would replace ``auto``."""
    table = table_of(TINY, frontier=2)
    words = ["solve", TINY, "--set", "frontier=2", "--results", table.parents[2]]
    monkeypatch.setenv("RAY_ADDRESS", "nowhere")
    code, _, err = command(*words, "--force", "--address", "auto")
    assert code == 2 and err.count("\n") == 1, err
    assert "--address: the Ray cluster at auto does not answer" in err
    assert command(*words, "--address", "auto")[0] == 0  # complete
    code, out, err = command("query", table, "scores=0,1000,500", "earned=0,1,0")
    assert code == 0 and "play" in out, err
