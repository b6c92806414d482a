"""`status` of a compacted study replays nothing, and says the same as a replay."""

import json
import math
import random
from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from orchestrator.cli.status import status
from orchestrator.engine import overview
from orchestrator.store import store as store_module
from orchestrator.store.files import checksum
from orchestrator.store.part_summaries import SUMMARY_KEY
from orchestrator.study.declaration import current_declaration
from tests.messages import assert_says
from tests.orchestrator.studies import StudyRun


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    run = StudyRun(tmp_path_factory.mktemp("study"), "solvers=[libsvm_l1]")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "_SUMMARISED_FROM_BYTES", 0)
        run.go()
    return run.store, current_declaration(run.store.provenance())


def test_a_compacted_study_is_told_without_a_replay(finished, monkeypatch):
    store, declaration = finished
    monkeypatch.setattr(overview, "replay_pair", None)
    told = overview.overview(store, declaration)
    (run_id,) = {run["run_id"] for run in store.provenance()}
    assert store.scan(partial(overview.summarise, declaration, store.search_records.read)).runs == {run_id}
    monkeypatch.undo()
    monkeypatch.setattr(overview, "code_digest", lambda: "of other code")
    assert overview.overview(store, declaration) == told
    assert all(pair.complete and pair.stored == pair.planned for pair in told.pairs.values())


def forge(store, text):
    """Give the only part of a store another summary, and a name with the checksum of its new bytes."""
    (part,) = store.trials_folder.glob("part-*")
    table = pq.read_table(part)
    with pq.ParquetWriter(part, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({SUMMARY_KEY: text.encode()})
    part.rename(part.with_name(f"part-x-{checksum(part.read_bytes())}.parquet"))


def values_of(node):
    """Yield every place in JSON: what holds it, and its key."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        yield node, key
        if isinstance(value, dict | list):
            yield from values_of(value)


NUMBERS = [-1, 0, 13, -1.0, math.nan, math.inf, 10**400]
ODD = [None, True, "", "x", "\ud800", "../../x", [], [1], {}, *NUMBERS]


def test_no_summary_is_believed_that_cannot_be_true(finished, full_size):
    store, declaration = finished
    told = overview.overview(store, declaration)
    runs = {run["run_id"] for run in store.provenance()}
    (part,) = store.trials_folder.glob("part-*")
    kept = pq.read_metadata(part).metadata[SUMMARY_KEY].decode()
    rng = random.Random(0)
    forged = ["", "7", "[]", "{}", "null", "[" * 100_000, '{"groups": [], "pairs": {}, "runs": []}']
    for _ in range(3000 if full_size else 30):
        content = json.loads(kept)
        node, key = rng.choice([*values_of(content)])
        node[key] = rng.choice(ODD)
        forged.append(json.dumps(content))
    fewer = json.loads(kept)
    for pair in fewer["pairs"].values():
        pair[:2], pair[5][0][2] = [13, 13], 13
        pair[3] = False
    forged.append(json.dumps(fewer))
    for text in forged:
        forge(store, text)
        assert overview.overview(store, declaration) == told, text
        assert store.scan(partial(overview.summarise, declaration, store.search_records.read)).runs <= runs


@pytest.mark.parametrize("seconds", [math.nan, math.inf, 1.7e308, -5.0])
def test_seconds_that_no_training_took_are_not_counted(finished, seconds, capsys):
    store, _ = finished
    (part,) = store.trials_folder.glob("part-*")
    content = part.read_bytes()
    table = pq.read_table(part)
    table = table.set_column(
        table.column_names.index("fit_seconds"), "fit_seconds", pa.array([seconds] * table.num_rows)
    )
    pq.write_table(table.slice(0, 100).replace_schema_metadata(), part)
    part = part.rename(part.with_name("part-x.parquet"))
    try:
        status(
            SimpleNamespace(study=lambda: (store.folder.name, store.folder.parent), as_json=False), Console()
        )
    finally:
        part.write_bytes(content)
    assert_says(capsys.readouterr().out, "100 of 114 trials", "0 failed", "1 worker")
