import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from orchestrator.store import arrow_tables
from tests.orchestrator.store.stored_rows import records, trial


def test_numbers_and_words_in_one_parameter_become_words(store):
    store.append([records(trial("a", param_degree=3), trial("b", param_degree=None))])
    store.append([records(trial("c", param_degree="auto"), trial("d", param_degree=3.0))])
    for _ in range(2):
        found = store.trials().set_index("key")["param_degree"]
        assert found[["a", "c", "d"]].to_list() == ["3", "auto", "3"]
        assert pd.isna(found["b"])
        store.compact()


def test_truth_and_other_values_are_text(store):
    store.append([records(trial("a", param_flag=True, param_x=[1, 2]), trial("b", param_flag=False))])
    found = store.trials().set_index("key")
    assert found["param_flag"].to_dict() == {"a": "true", "b": "false"}
    assert found["param_x"]["a"] == "[1,2]"


def test_derived_tables_hold_parameters_of_any_kind(store):
    store.write_outer([trial("a", param_gamma="scale"), trial("b", param_gamma=0.5)])
    store.write_selections([{"outer": 0, "param_flag": True}, {"outer": 1, "param_C": 1}])
    assert [row["param_gamma"] for row in store.outer_rows()] == ["scale", "0.5"]
    assert [(row["param_flag"], row["param_C"]) for row in store.selection_rows()] == [
        ("true", None),
        (None, 1),
    ]
    store.write_selections([])
    assert store.selection_rows() == []


def test_arms_with_other_parameters_leave_theirs_empty(store):
    store.append([records(trial("a", param_C=1))])
    store.append([records(trial("b", param_nu=0.5))])
    frame = store.trials().set_index("key")
    assert frame["param_nu"]["b"] == 0.5
    assert pd.isna(frame["param_nu"]["a"])


def test_lists_keep_their_dictionaries_and_large_parts_their_groups():
    numbers = np.random.default_rng(0).integers(0, 3, (500, 1000)).astype(np.int32)
    table = pa.table({"test_row": pa.array(list(numbers), pa.list_(pa.int32()))})
    file = io.BytesIO()
    arrow_tables.write_table(file, table)
    column = pq.ParquetFile(file).metadata.row_group(0).column(0)
    assert column.has_dictionary_page
    assert [group.num_rows for group in arrow_tables.in_groups([table] * 20)] == [17 * 500, 3 * 500]
