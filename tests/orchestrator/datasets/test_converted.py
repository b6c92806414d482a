"""A file that was read before is opened from its prepared copy, whose content is checked again."""

import numpy as np
import pytest

from orchestrator.datasets import families, findings, loader_process, open_prepared
from orchestrator.datasets.audit import audit
from orchestrator.datasets.families import relations
from orchestrator.datasets.findings import cached_audit
from orchestrator.datasets.loader_process import load_and_prepare
from orchestrator.study.study import DatasetSpec


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Load a file of some format, and say whether it was read."""
    loads = []
    plain = loader_process._load_and_prepare
    monkeypatch.setattr(
        loader_process, "_load_and_prepare", lambda *given: loads.append(given) or plain(*given)
    )

    def read(file="t.csv", target="csv_file", **params):
        loads.clear()
        where = {"path": str(tmp_path / file), "label": "y"} if "." in file else {}
        spec = DatasetSpec("t", f"orchestrator.datasets.{target}", where | params)
        return open_prepared(load_and_prepare(spec, tmp_path / "cache")), bool(loads)

    return read


def test_a_file_is_read_once_until_it_or_its_configuration_changes(tmp_path, read):
    (tmp_path / "t.csv").write_text("x,c,y\n1,a,p\n2,b,q\n1,a,p\n")
    first, was_read = read()
    again, was_read_again = read()
    assert (was_read, was_read_again) == (True, False)
    assert again.fingerprint == first.fingerprint
    assert again.columns == ("x", "c")
    dropped, was_read = read(deduplicate="drop")
    assert (was_read, dropped.n_dropped) == (True, 1)
    assert read(deduplicate="drop")[0].n_dropped == 1
    (tmp_path / "t.csv").write_text("x,c,y\n1,a,p\n2,b,q\n3,a,p\n")
    assert read()[0].X["x"].tolist() == [1, 2, 3]
    (tmp_path / "u.csv").write_bytes((tmp_path / "t.csv").read_bytes())
    assert read("u.csv")[1]


def test_libsvm_files_are_found_by_name_and_generated_data_are_not_kept(tmp_path, read):
    (tmp_path / "t.libsvm").write_text("1 1:1\n2 2:1\n")
    given = {"name": "t", "folder": str(tmp_path)}
    assert [read("t", "libsvm_file", **given)[1] for _ in range(2)] == [True, False]
    assert [read("t", "checkers", n=20)[1] for _ in range(2)] == [True, True]


def test_a_damaged_copy_is_made_anew(tmp_path, read):
    (tmp_path / "t.csv").write_text("x,y\n1,p\n2,q\n")
    X = read()[0].X.tolist()
    for name, old, new in (
        ("X.npy", b"\xf0?", b"\xf8?"),
        ("meta.json", b'"x"', b'"z"'),
        ("codes.npy", b"\x01", b""),
    ):
        (path,) = (tmp_path / "cache").glob(f"t-*/{name}")
        path.write_bytes(path.read_bytes()[:-40] + path.read_bytes()[-40:].replace(old, new))
        damaged = path.read_bytes()
        found, was_read = read()
        assert was_read == (path.read_bytes() != damaged)
        assert (found.X.tolist(), found.columns) == (X, ("x",))


def test_what_was_found_in_a_copy_is_computed_once(tmp_path, read, monkeypatch):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 9, (60, 3)).astype(str)
    (tmp_path / "t.csv").write_text("a,b,y\n" + "\n".join(",".join(row) for row in rows))
    dataset, _ = read()
    (folder,) = (tmp_path / "cache").glob("t-*")
    split = [(np.arange(40), np.arange(40, 60))]
    found = cached_audit(folder, dataset, split, "one")
    assert found == audit(dataset, split)
    assert found != cached_audit(folder, dataset)
    pair = {"t": dataset.X, "u": dataset.X[:50].copy()}
    related = relations(pair, {}, {"t": folder})
    monkeypatch.setattr(findings, "audit", None)
    assert cached_audit(folder, dataset, [], "one") == found
    monkeypatch.setattr(families._RowSets, "of", classmethod(lambda cls, X: 1 / (len(X) - 60)))
    assert isinstance(families._RowSets.cached(dataset.X, folder), families._RowSets)
    monkeypatch.undo()
    assert relations(pair, {}, {"t": folder}) == related
    (folder / ".audit-one.json").write_text("{")
    assert cached_audit(folder, dataset, split, "one") == found
