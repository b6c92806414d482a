import shutil

import pandas as pd

from orchestrator.store.store import Store
from orchestrator.study.records import StoredTrial
from tests.orchestrator.store.stored_rows import START, recorded_runs, records, trial


def test_a_repeated_key_counts_once_ok_before_failed_then_the_newest_run_whatever_the_clock(store):
    recorded_runs(store, "y", "z", "x")
    store.append(
        [records(trial("a", score=0.1, run_id="y"), trial("b", "error", None, run_id="y", minute=9))]
    )
    store.append([records(trial("a", score=0.2, run_id="z", minute=-9), trial("b", score=0.7, run_id="z"))])
    store.append([records(trial("a", "worker_lost", None, run_id="x"))])
    store.append([records(trial("c", "error", None, message="new", run_id="z", minute=-9))])
    store.append([records(trial("c", "error", None, message="old", run_id="y", minute=9))])

    def check():
        found = {key: (stored.status, stored.score) for key, stored in store.stored().items()}
        assert found["a"] == ("ok", 0.2)
        assert found["b"] == ("ok", 0.7)
        assert store.trials().set_index("key")["message"]["c"] == "new"

    check()
    store.compact()
    check()


def test_which_of_several_rows_of_one_run_counts_does_not_depend_on_the_order_of_parts(store, tmp_path):
    recorded_runs(store, "y")
    same = [trial(key, run_id="y", inner=-1) for key in "abcde"]
    other = [{"score": 0.6}, {"message": "x"}, {"n_sv": 7}, {"param_C": "4"}, {"started_at": START}]
    rows = [same, [row | columns for row, columns in zip(same, other, strict=True)]]
    rows[1].append(trial("f", "error", None, run_id="y"))
    rows[0].append(trial("f", "timeout", None, run_id="y"))
    found = []
    for number, order in enumerate(([0, 1], [1, 0, 0])):
        ordered = Store(tmp_path / f"order{number}" / "s")
        shutil.copytree(store.folder, ordered.folder)
        for place in order:
            ordered.append([records(*rows[place])])
        for _ in range(2):
            frame = ordered.trials()
            found.append(frame[sorted(frame)])
            few = frame[["key", "status", "score"]].itertuples(index=False, name=None)
            known = [(key, StoredTrial(*trial)) for key, *trial in few]
            assert repr(sorted(ordered.stored().items())) == repr(sorted(known))
            n_sv = {key: row["n_sv"] for key, row in ordered.refits().items()}
            assert n_sv == frame[frame.inner == -1].set_index("key")["n_sv"].replace({pd.NA: None}).to_dict()
            ((_, told),) = ordered.scan(lambda scan: scan.summaries(bool) or [*scan.rows(set())])
            scanned = zip(told.keys, told.statuses, told.messages, strict=True)
            few = frame[["key", "status", "message"]].itertuples(index=False, name=None)
            assert sorted(scanned) == sorted(few)
            ordered.compact()
    for frame in found:
        pd.testing.assert_frame_equal(frame, found[0])
