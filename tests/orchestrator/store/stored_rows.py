"""Rows and records of runs for tests of a store."""

from datetime import UTC, datetime, timedelta

from orchestrator.study.records import Records

START = datetime(2026, 1, 1, tzinfo=UTC)


def trial(key, status="ok", score=0.5, minute=0, inner=0, **columns):
    return {
        "key": key,
        "identity": "i",
        "dataset": "iris",
        "solver": "svc",
        "outer": 0,
        "inner": inner,
        "status": status,
        "message": "",
        "score": score,
        "finished_at": START + timedelta(minutes=minute),
        **columns,
    }


def records(*rows):
    return Records.of({"study": "s"}, rows)


def keys(store):
    return sorted(store.trials()["key"])


def parts(store):
    return sorted(store.trials_folder.glob("part-*.parquet"))


def recorded_runs(store, *ids):
    """Record runs in this order, each by a clock that is a day behind the one before."""
    for place, run_id in enumerate(ids):
        day = f"2026-01-{28 - place}"
        store.write_provenance(
            run_id, {"run_id": run_id, "number": store.next_run_number(), "started_at": day}
        )
