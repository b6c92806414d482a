"""Whatever an estimator reports can be stored, and keeps nothing else from being stored."""

import enum
import io
import logging
import math
import pickle
from datetime import UTC, datetime

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from orchestrator.cli.display import display
from orchestrator.engine.load import read_results
from orchestrator.engine.prepare import prepare_study
from orchestrator.engine.run import run_session
from orchestrator.store.columns import TRIAL_SCHEMA
from orchestrator.store.run_log import run_log
from orchestrator.store.store import Store, StoreError
from orchestrator.study.records import Records, merged, storable_value
from orchestrator.study.text import TEXT_BYTES, describe_error, storable_text
from tests.orchestrator.classifiers import here
from tests.orchestrator.studies import settings_for


class Unreadable(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


class EndsTheProcess(Unreadable):
    def __str__(self):
        raise SystemExit(3)


class NoText(Unreadable):
    def __str__(self):
        return 7


class OddText(str):
    def __str__(self):
        return self

    def _raise(self, *arguments):
        raise RuntimeError("no")

    split = encode = isascii = __getitem__ = __len__ = _raise


class Answers(str):
    """Its text is one that misbehaves."""

    def __str__(self):
        return OddText("answer")


class OddNumber(int):
    def __int__(self):
        raise RuntimeError("no number")

    __float__ = __index__ = __int__


class OddFloat(float):
    def __float__(self):
        raise RuntimeError("no number")


class Color(enum.IntEnum):
    RED = 1


ODD = [
    "\ud800",
    "a\x00b",
    "x" * 1_000_000,
    "é" * 10_000,
    2**63,
    -(2**70),
    10**400,
    np.int32(7),
    np.uint64(2**64 - 1),
    np.float32(0.5),
    np.longdouble(0.5),
    np.bool_(True),
    np.str_("text"),
    np.array([1, 2]),
    np.datetime64("2026-01-01"),
    1j,
    b"\xff",
    object(),
    {"a": [1]},
    Unreadable(),
    EndsTheProcess(),
    NoText(),
    OddText("odd"),
    Answers(),
    OddNumber(3),
    OddFloat(0.5),
    Color.RED,
    math.nan,
    math.inf,
    Unreadable,
]
odd = st.sampled_from(range(len(ODD))).map(ODD.__getitem__)
PLAIN = (type(None), bool, int, float, str, datetime)
NAMES = [name for name in TRIAL_SCHEMA.names if name not in ("key", "status", "run_id")]


@pytest.mark.parametrize("place", range(len(ODD)))
def test_any_value_becomes_plain_and_small_and_stays_so(place):
    value = storable_value(ODD[place])
    assert type(value) in PLAIN
    assert len(str(value).encode()) <= TEXT_BYTES
    assert storable_value(value) is value or storable_value(value) == value or value != value
    pickle.dumps(value)


def test_numbers_stay_numbers():
    found = [storable_value(value) for value in (np.int32(7), np.float32(0.5), np.bool_(True), Color.RED)]
    assert found == [7, 0.5, True, 1]
    assert list(map(type, found)) == [int, float, bool, int]
    assert [storable_value(number) for number in (2**63 - 1, -(2**63), 2**70, 10**400)] == [
        2**63 - 1,
        -(2**63),
        2.0**70,
        None,
    ]
    assert [storable_value(OddNumber(3)), storable_value(OddFloat(0.5))] == [3, 0.5]


@given(st.text() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.booleans() | st.none())
def test_what_can_be_stored_stays_as_it_is(value):
    assert storable_value(value) == value
    assert type(storable_value(value)) is type(value)


@given(st.text(st.characters(), max_size=300), st.integers(0, 40))
def test_a_text_that_is_cut_says_how_much_is_missing(text, times):
    text *= times
    short = storable_text(text)
    assert len(short.encode()) <= TEXT_BYTES
    if len(text.encode()) <= TEXT_BYTES:
        assert short == text
    else:
        kept, _, notice = short.rpartition(" … (")
        assert text.startswith(kept)
        assert notice == f"{len(text) - len(kept):,} more characters)"
        assert len(kept.encode()) > TEXT_BYTES - 100


@given(st.lists(st.tuples(st.sampled_from([*NAMES, "score_f1", "param_C", "param_\ud800"]), odd), max_size=6))
def test_an_odd_row_is_stored_and_so_are_those_beside_it(tmp_path_factory, columns):
    healthy = {"key": "healthy", "status": "ok", "score": 0.5, "n_iter": 3, "message": "", "outer": 1}
    row = {"key": "odd", "status": "ok", **dict(columns)}
    given_away = {name: value for name, value in row.items() if not name.startswith("param_")}
    for batch in (Records.of({}, [row, healthy]), Records({}, {k: [v, v] for k, v in row.items()})):
        store = Store(tmp_path_factory.mktemp("store"))
        store.lock().release()
        store.append([batch, Records.of({"dataset": "\ud800"}, [healthy | {"key": "other"}])])
        frame = store.trials().set_index("key")
        assert {"odd", "other"} <= set(frame.index)
        assert frame.loc["other", "score"] == 0.5
        assert frame.loc["other", "n_iter"] == 3
        if "healthy" in frame.index:
            assert frame.loc["healthy", "outer"] == 1
            pickle.dumps(Records.of({}, [given_away]))
        (part,) = store.trials_folder.glob("part-*")
        table = pq.read_table(part)
        table.validate(full=True)
        for name in {"message", "fit_status", "stopping"} & set(given_away):
            texts = [text for text in table[name].to_pylist() if isinstance(text, str)]
            assert all(len(text.encode()) <= TEXT_BYTES for text in texts)


@pytest.mark.parametrize("error", [Unreadable(), EndsTheProcess(), NoText(), Unreadable("\ud800" * 10**6)])
def test_any_error_can_be_described(error):
    assert describe_error(error).startswith(f"{type(error).__name__}: ")
    long = type("E" * 10**6, (Exception,), {})("x" * 10**8)
    assert len(describe_error(long)) <= TEXT_BYTES
    assert "more characters)" in describe_error(long)


def test_a_log_line_is_as_short_and_its_trouble_ends_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(logging.getLogger("orchestrator"), "propagate", False)  # what pytest adds raises
    path = tmp_path / "log.jsonl"
    with run_log(path):
        for error in (ValueError("x" * 10**7), Unreadable(), ValueError("\ud800")):
            try:
                raise error
            except Exception:
                logging.getLogger("orchestrator").info("failed: %s", "y" * 10**6, exc_info=True)
        logging.getLogger("orchestrator").info("%s", Unreadable())
    text = path.read_text()
    assert len(text) < 100_000
    assert text.count("\n") == 3


@pytest.mark.parametrize("place", ["folder", "file"])
def test_a_log_is_never_written_through_a_link(tmp_path, place):
    target = tmp_path / "precious"
    target.write_text("mine")
    path = tmp_path / "logs" / "x.jsonl"
    if place == "file":
        path.parent.mkdir()
        path.symlink_to(target)
    else:
        path.parent.symlink_to(tmp_path / "nowhere")
    told = r"cannot write the log .*x\.jsonl.*remove or rename it"
    with pytest.raises(StoreError, match=told), run_log(path):
        pass
    assert target.read_text() == "mine"


def test_a_message_of_many_megabytes_costs_neither_time_nor_space(tmp_path, monkeypatch):
    monkeypatch.setattr(logging.getLogger("orchestrator"), "propagate", False)  # pytest keeps whole messages
    settings = settings_for(
        tmp_path, f"{{_target_: {here('ComplainsAtLength')}, space: {{C: [1, 2, 3, 4]}}}}"
    )
    run_session(settings, prepare_study(settings), display(Console(file=io.StringIO())), ["test"])
    results = read_results(Store(settings.paths.results / "s"))
    assert len(results.trials) == 16
    assert set(results.trials["status"]) == {"error"}
    assert results.trials["message"].str.len().max() <= TEXT_BYTES
    assert results.trials["message"].str.contains("more characters").all()
    (log,) = results.folder.glob("logs/*.jsonl")
    assert log.stat().st_size < 1_000_000


def test_times_are_stored_as_they_are(tmp_path):
    store = Store(tmp_path / "s")
    store.lock().release()
    now = datetime.now(UTC)
    store.append([Records.of({}, [{"key": "a", "status": "ok", "started_at": now}])])
    assert store.trials()["started_at"].iloc[0] == now


def test_batches_with_the_same_constants_are_stored_as_one():
    first, second = Records({"study": "s"}, {"key": ["a"]}), Records({"study": "s"}, {"key": ["b", "c"]})
    other, wider = (
        Records({"study": "t"}, {"key": ["d"]}),
        Records({"study": "t"}, {"key": ["e"], "score": [1.0]}),
    )
    found = [(records.constants, records.columns) for records in merged([first, second, other, wider])]
    assert found == [
        ({"study": "s"}, {"key": ["a", "b", "c"]}),
        ({"study": "t"}, {"key": ["d"]}),
        ({"study": "t"}, {"key": ["e"], "score": [1.0]}),
    ]
    assert first.columns == {"key": ["a"]}


def test_parts_that_lack_columns_are_joined_with_gaps():
    joined = Records.joined({}, [{"key": ["a", "b"], "n_sv": [1, 2]}, {"key": ["c"], "score": [0.5]}])
    assert joined.columns == {"key": ["a", "b", "c"], "n_sv": [1, 2, None], "score": [None, None, 0.5]}
    assert len(joined) == 3
