"""Where a cluster is to be joined: what is no head of one is found out soon, in a sentence."""

import socket
import threading
from contextlib import contextmanager

import pytest

from luckbase.cluster.run import ray
from luckbase.solver.errors import OptionError


@contextmanager
def answering(answer):
    """The address of a server that says this to everybody, and no more until they go."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            one, _ = server.accept()
            with one:
                one.sendall(answer)
                while one.recv(1 << 16):
                    pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-x\r\n"],
    ids=["nothing", "http 1", "ssh"],
)
def test_what_is_no_ray_cluster_is_said_at_once(answer, monkeypatch, capfd):
    monkeypatch.setattr(ray, "ANSWER_SECONDS", 0.3)
    said = "address: what listens at 127.0.0.1:.* is not the head of a Ray cluster; expected its"
    with answering(answer) as address, pytest.raises(OptionError, match=said):
        ray.check_address(address)
    assert capfd.readouterr() == ("", "")


def test_the_head_of_a_cluster_is_let_pass(ray_cluster):
    ray.check_address(ray_cluster)


def test_what_listens_with_tls_is_left_to_ray(monkeypatch):
    monkeypatch.setenv("RAY_USE_TLS", "1")
    with answering(b"") as address:
        ray.check_address(address)


@pytest.mark.parametrize("address", ["auto", "ray://127.0.0.1:9", "local"])
def test_other_forms_are_left_to_ray(address):
    ray.check_address(address)
