"""Stores that URIs name: what goes wrong with them, each on a real server or between it and us."""

import os
import signal
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

from luckbase.cluster.answers.find import open_table
from luckbase.cluster.store import remote
from luckbase.cluster.store.remote import Objects
from luckbase.cluster.store.storage import Place, is_uri, place_of, storage_at
from luckbase.solver.errors import CorruptTableError, MissingTableError, OptionError, StoreError
from tests.proxy import Proxy
from tests.stores import BUCKET, READER, without_credentials

OTHER = b'<?xml version="1.0"?><Error><Code>%s</Code><Message>no</Message></Error>'


@pytest.fixture
def between(seaweed, bucket, monkeypatch):
    """between(change) gives a storage whose requests go through it, and what sees them."""
    proxies = []

    def make(change):
        proxies.append(Proxy(seaweed.endpoint, change=change))
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxies[-1].endpoint)
        return storage_at(place_of(bucket)), proxies[-1]

    yield make
    for proxy in proxies:
        proxy.close()


class Once:
    """A change of the first put alone: `then(forward)`."""

    def __init__(self, then):
        self.then, self.puts = then, 0

    def __call__(self, method, path, forward):
        self.puts += method == "PUT"
        return self.then(forward) if method == "PUT" and self.puts == 1 else forward()


def lost(forward):
    """It has landed; nobody is told."""
    forward()


# --- what a put with a condition meets -----------------------------------------------------------


def test_a_put_whose_answer_was_lost_has_put_it(between):
    storage, proxy = between(once := Once(lost))
    assert storage.swap("a", b"mine", None)
    assert once.puts == 2  # obstore made it again, and was refused
    assert proxy.requests[-1][0] == "GET"
    assert storage.swap("a", b"other", None) is None


def test_a_put_that_was_not_answered_in_time_is_read_back(between, monkeypatch):
    def slow(forward):
        forward()
        end = time.monotonic() + 60
        while not proxy.requests and time.monotonic() < end:  # until it is read back
            time.sleep(0.01)

    monkeypatch.setattr(remote, "TIMEOUT", "1s")
    remote._store.cache_clear()
    storage, proxy = between(once := Once(slow))
    assert storage.swap("a", b"mine", None)
    assert once.puts == 1
    assert proxy.requests[0][0] == "GET"  # the put was answered after that, to nobody
    remote._store.cache_clear()


def test_a_put_that_was_lost_itself_is_made_again(between):
    storage, _ = between(once := Once(lambda forward: None))
    assert storage.swap("a", b"mine", None)
    assert once.puts == 2
    assert storage.read("a") == b"mine"


def test_a_put_that_another_was_before_while_its_answer_was_lost_has_not(
    between, bucket, seaweed, monkeypatch
):
    other = storage_at(place_of(bucket))

    def overtaken(forward):
        other.put("a", b"theirs")

    storage, _ = between(Once(overtaken))
    assert storage.swap("a", b"mine", None) is None
    assert storage.read("a") == b"theirs"


def test_a_409_with_nothing_there_is_tried_again(between):
    again = 409, OTHER % b"ConditionalRequestConflict"
    storage, _ = between(once := Once(lambda forward: again))
    assert storage.swap("a", b"mine", None)
    assert once.puts == 2


def test_a_replacement_whose_answer_was_lost_has_replaced_it(between):
    storage, _ = between(lambda method, path, forward: forward())
    storage.put("a", b"old")
    tag = storage.read_tagged("a")[1]
    storage, _ = between(Once(lost))
    new = storage.swap("a", b"new", tag)
    assert storage.read_tagged("a") == (b"new", new)
    storage, _ = between(once := Once(lambda forward: None))
    newer = storage.swap("a", b"newer", new)
    assert (storage.read_tagged("a"), once.puts) == ((b"newer", newer), 2)


# --- servers that are away -----------------------------------------------------------------------


def away(server, seconds):
    """Close a proxy; one at the same port comes back after so long."""
    port = int(server.endpoint.rpartition(":")[2])
    server.close()
    timer = threading.Timer(seconds, lambda: Proxy(server.target.geturl(), port=port))
    timer.start()
    return timer


@pytest.mark.parametrize("seconds", [1.5, pytest.param(10.0, marks=pytest.mark.slow)])
def test_a_server_that_is_away_for_a_while_is_waited_for(between, seconds):
    storage, proxy = between(lambda method, path, forward: forward())
    storage.put("a", b"1")
    started, back = time.monotonic(), away(proxy, seconds)
    assert storage.read("a") == b"1"
    assert time.monotonic() - started >= seconds - 0.5
    back.join()
    assert storage.swap("b", b"2", None)


def test_what_never_answered_is_given_up_soon_and_what_did_is_not(bucket, monkeypatch):
    assert remote.PATIENT["tries"] * 3 >= remote.PATIENT["seconds"] >= 120
    assert remote.FIRST["seconds"] <= 15
    storage = storage_at(place_of(bucket))
    assert isinstance(storage, Objects)
    remote._answered.discard(("s3", BUCKET))
    assert storage._store.retry_config["max_retries"] == remote.FIRST["tries"]
    storage.put("a", b"1")
    result = storage._store.retry_config
    assert result["max_retries"] == 60
    assert result["backoff"]["init_backoff"] == timedelta(seconds=0.5)
    assert result["backoff"]["max_backoff"] == timedelta(seconds=3)
    remote._store.cache_clear()
    monkeypatch.setitem(remote.FIRST, "tries", 0)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    remote._answered.clear()
    with pytest.raises(StoreError, match="does not answer; the same command resumes"):
        storage_at(place_of(bucket)).read("a")


def test_a_process_that_was_forked_says_so(bucket):
    storage = storage_at(place_of(bucket))
    storage.put("a", b"1")
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(10)  # else it would wait for a thread that it has not
        try:
            storage.read("a")
        except StoreError as error:
            os.write(writes, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writes)
    assert b"start it by multiprocessing's spawn" in os.read(reads, 1000)


# --- what a person is told -----------------------------------------------------------------------


def test_no_bucket_is_not_no_table(bucket):
    with pytest.raises(MissingTableError, match="no table here"):
        open_table(f"{bucket}/t")
    with pytest.raises(StoreError, match="no-such/t: there is no such bucket"):
        open_table("s3://no-such/t")
    storage = storage_at(place_of("s3://no-such/t"))
    for ask in (
        storage.list,
        lambda: storage.read("a"),
        lambda: place_of("s3://no-such/t").is_file(),
    ):
        with pytest.raises(StoreError, match="there is no such bucket; make it first"):
            ask()


def test_a_wrong_key_and_one_that_may_only_read(bucket, monkeypatch):
    storage_at(place_of(bucket)).put("a", b"1")
    with monkeypatch.context() as patch:
        patch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        for ask in (lambda s: s.read("a"), lambda s: s.swap("b", b"", None), lambda s: s.list()):
            with pytest.raises(
                StoreError, match=r"does not take the key \(SignatureDoesNotMatch\)"
            ):
                ask(storage_at(place_of(bucket)))
    for name, value in READER.items():
        monkeypatch.setenv(name, value)
    storage = storage_at(place_of(bucket))
    assert (storage.read("a"), list(storage.list())) == (b"1", ["a"])
    for does, ask in {
        "write": lambda: storage.put("b", b"1"), "delete": lambda: storage.delete("a"),
    }.items():  # fmt: skip
        with pytest.raises(StoreError, match=f"the key may not {does} there"):
            ask()
    with pytest.raises(StoreError, match="the key may not write there"):
        storage.swap("b", b"1", None)


@pytest.mark.parametrize(
    ("status", "code", "text"),
    [
        (403, b"RequestTimeTooSkewed", "UTC, that of the store 20.*; set the wrong one, then ag"),
        (507, b"InsufficientStorage", "the store is full; make room there"),
        (400, b"QuotaExceeded", "the store is full; make room there"),
        (400, b"ExpiredToken", r"does not take the key \(ExpiredToken\)"),
        (404, b"ContainerNotFound", "there is no such bucket; make it first"),
        (418, b"Teapot", "Teapot|418"),
    ],
)
def test_what_a_server_refuses_is_a_sentence(between, status, code, text, monkeypatch):
    monkeypatch.setitem(remote.FIRST, "tries", 0)
    monkeypatch.setitem(remote.PATIENT, "tries", 0)
    monkeypatch.setitem(remote.PATIENT, "seconds", 0.0)
    remote._store.cache_clear()
    storage, _ = between(lambda method, path, forward: (status, OTHER % code))
    puts = lambda: storage.put("a", b"1"), lambda: storage.swap("b", b"1", None)
    for ask in (*puts, lambda: storage.read("c"), lambda: storage.list("d")):
        with pytest.raises(StoreError, match=text) as result:
            ask()
        assert "\n" not in str(result.value)
        assert len(str(result.value)) < 300
    remote._store.cache_clear()


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_without_credentials_nobody_is_asked(scheme, tmp_path, monkeypatch):
    for name in os.environ.keys() - without_credentials(os.environ).keys():
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(remote, "_VENDOR", tmp_path)
    query = list[object]()
    with monkeypatch.context() as patch:
        patch.setattr(remote, "_store", lambda *how: query.append(how))
        with pytest.raises(StoreError, match=f"{scheme}://: no credentials here; expected"):
            storage_at(place_of(f"{scheme}://bucket/prefix"))
    assert not query
    vendor = {"s3": "Amazon EC2", "gs": "Google", "az": "Microsoft Corporation"}[scheme]
    (tmp_path / "sys_vendor").write_text(f"{vendor}\n")
    if scheme != "az":  # whose account is not known on its machines either
        storage_at(place_of(f"{scheme}://bucket/prefix"))


def test_keys_are_found_where_the_tools_of_clouds_keep_them(tmp_path, monkeypatch):
    for name in os.environ.keys() - without_credentials(os.environ).keys():
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(
        "[default]\naws_access_key_id = A\naws_secret_access_key = B%\n"
        "[work]\naws_access_key_id = C\naws_secret_access_key = D\naws_session_token = E\n"
    )
    (tmp_path / ".aws/config").write_text(
        "[default]\nregion = eu-west-1\n[profile work]\nendpoint_url = https://s3.example\n"
    )
    default = {"region": "eu-west-1", "access_key_id": "A", "secret_access_key": "B%"}
    assert remote.credentials("s3") == default
    monkeypatch.setenv("AWS_PROFILE", "work")
    work = {"endpoint": "https://s3.example", "access_key_id": "C", "secret_access_key": "D",
            "session_token": "E", "region": "us-east-1"}  # fmt: skip
    assert remote.credentials("s3") == work
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "F")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "G")
    result = remote.credentials("s3")
    assert (result["access_key_id"], result["secret_access_key"]) == ("F", "G")
    assert "session_token" not in result
    text = "DefaultEndpointsProtocol=https;AccountName=n;AccountKey=aw==;EndpointSuffix=x"
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
    assert remote.credentials("az") == {"account_name": "n", "account_key": "aw=="}


def test_half_a_key_and_an_endpoint_that_is_none_are_a_sentence(tmp_path, monkeypatch):
    for name in os.environ.keys() - without_credentials(os.environ).keys():
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(remote, "_VENDOR", tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    with pytest.raises(StoreError, match="no credentials here; expected AWS_ACCESS_KEY_ID and AW"):
        remote.credentials("s3")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "B")
    for endpoint in ("localhost:8333", "http://lo cal", "ftp://a"):  # obstore panics at these
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        with pytest.raises(StoreError, match=f"'{endpoint}'; expected one as http://HOST:PORT"):
            remote.credentials("s3")
    for endpoint in ("http://127.0.0.1:8333", "https://s3.example.org/", "http://[::1]:9000/s3"):
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        assert remote.credentials("s3")["endpoint"] == endpoint


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("HTTP error: error sending request\n\nDebug source: … InvalidCertificate(UnknownIssuer)",
         "the certificate of its server is not trusted"),
        ("Generic HTTP error: HTTP error: request or response body error\n\nDebug … connection",
         "an answer was cut off on its way"),
        ("Generic S3 error: Error performing GET http://a/ in 40.49µs - Server says: 4 <a>no</a>",
         "Server says: 4 no"),
    ],
)  # fmt: skip
def test_what_obstore_says_is_told_shortly(text, sentence):
    assert remote._reason(text, "read").startswith(sentence)


# --- names ---------------------------------------------------------------------------------------


def test_a_place_joins_names_as_a_path_does():
    place = place_of("s3://bucket/results/")
    table = place / "pig" / "race/abc"
    assert isinstance(table, Place)
    assert (str(table), table.name) == ("s3://bucket/results/pig/race/abc", "abc")
    assert (table.parents[2], os.fspath(table.parent)) == (place, "s3://bucket/results/pig/race")
    assert table.is_relative_to(place)
    assert is_uri(table)
    assert is_uri(Path("https://a/b"))
    assert not is_uri("results/s3")
    assert not is_uri("c:/x")


@pytest.mark.parametrize("name", [
    "ftp://a/b", "s3://", "s3x://a", "https://a/b?c=1", "s3://a b/c", "s3://a/../b", "https://ü/b",
])  # fmt: skip
def test_a_uri_of_another_kind_is_refused(name):
    with pytest.raises(OptionError, match="expected"):
        place_of(name)


def test_an_address_is_taken_as_a_browser_shows_it_and_a_key_as_it_stands():
    assert place_of("https://a.org:8/b%20c/%C3%BC/") == place_of("https://a.org:8/b c/ü")
    assert str(place_of("s3://a/b%20c")) == "s3://a/b%20c"


def test_tables_are_found_by_listing(tmp_path):
    place = place_of(f"memory://{tmp_path.name}/results")
    for name in ("pig/race/a/manifest.json", "pig/race/b/manifest.json", "pig/x/other/c/d"):
        storage_at(place).put(name, b"{}")
    assert [str(p.relative_to(place)) for p in place.glob("*/*/*/manifest.json")] == [
        "pig/race/a/manifest.json", "pig/race/b/manifest.json",
    ]  # fmt: skip
    assert [p.name for p in place.glob("pig/*/b")] == ["b"]
    assert list(place.glob("goofspiel/*/b")) == []
    assert (place / "pig/race/a/manifest.json").is_file()
    assert not (place / "pig/race/a").is_file()
    with pytest.raises(CorruptTableError):
        storage_at(place).read("pig/race/a/manifest.json", 0, 3)
