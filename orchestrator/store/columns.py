"""Define the columns of a study's tables."""

import pyarrow as pa

from orchestrator.study.records import PREDICTION_COLUMNS

SCHEMA_VERSION = 1
"""Version of the schema, which Parquet files hold. A newer one is refused."""


TRIAL_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("identity", pa.string()),
        ("study", pa.string()),
        ("dataset", pa.string()),
        ("solver", pa.string()),
        ("outer", pa.int32()),
        ("inner", pa.int32()),
        ("status", pa.string()),
        ("message", pa.string()),
        ("score", pa.float64()),
        ("n_correct", pa.int64()),
        ("n_test", pa.int64()),
        ("n_train", pa.int64()),
        ("n_features", pa.int64()),
        ("n_classes", pa.int64()),
        ("n_sv", pa.int64()),
        ("sv_share", pa.float64()),
        ("n_representatives", pa.int64()),
        ("n_nodes", pa.int64()),
        ("mean_depth", pa.float64()),
        ("model_values", pa.int64()),
        ("n_iter", pa.int64()),
        ("n_clipped", pa.int64()),
        ("n_full_updates", pa.int64()),
        ("n_kernel_evals", pa.int64()),
        ("gap", pa.float64()),
        ("objective", pa.float64()),
        ("converged", pa.bool_()),
        ("fit_status", pa.string()),
        ("stopping", pa.string()),
        ("fit_seconds", pa.float64()),
        ("fit_cpu_seconds", pa.float64()),
        ("predict_seconds", pa.float64()),
        ("predict_cpu_seconds", pa.float64()),
        ("row_seconds", pa.float64()),
        ("prepare_seconds", pa.float64()),
        ("gram_seconds", pa.float64()),
        ("reduction_seconds", pa.float64()),
        ("certificate_seconds", pa.float64()),
        ("compile_seconds", pa.float64()),
        ("profile", pa.string()),
        ("shared_gram", pa.bool_()),
        ("warm_started", pa.bool_()),
        ("seed", pa.int64()),
        ("host", pa.string()),
        ("worker", pa.string()),
        ("attempt", pa.int32()),
        ("started_at", pa.timestamp("us", tz="UTC")),
        ("finished_at", pa.timestamp("us", tz="UTC")),
        ("run_id", pa.string()),
        ("versions", pa.string()),
    ]
)
"""Fixed columns of a trial. `param_<name>` follow `inner`, and `score_<metric>` follow `score`."""

OUTER_SCHEMA = TRIAL_SCHEMA.append(pa.field("selection_key", pa.string()))
"""Columns of a refit, with the key of the selection whose candidate it trained."""


SELECTION_SCHEMA = pa.schema(
    [
        ("selection_key", pa.string()),
        ("identity", pa.string()),
        ("study", pa.string()),
        ("dataset", pa.string()),
        ("solver", pa.string()),
        ("outer", pa.int32()),
        ("inner_score", pa.float64()),
        ("inner_se", pa.float64()),
        ("n_tied", pa.int64()),
        ("n_candidates", pa.int64()),
        ("n_failed", pa.int64()),
    ]
)
"""Columns of a selection: the chosen candidate of a dataset, arm and outer split."""


PREDICTION_TYPES = dict.fromkeys(PREDICTION_COLUMNS, pa.list_(pa.int32()))
"""Types of the columns with predictions, which a part has only if its study keeps them."""


RUN_COLUMNS = frozenset(
    {
        "fit_seconds",
        "fit_cpu_seconds",
        "predict_seconds",
        "predict_cpu_seconds",
        "row_seconds",
        "prepare_seconds",
        "gram_seconds",
        "reduction_seconds",
        "certificate_seconds",
        "compile_seconds",
        "host",
        "worker",
        "attempt",
        "started_at",
        "finished_at",
        "run_id",
    }
)
"""Columns in which two runs of the same study may differ; all others are identical bit for bit."""

KEY_COLUMNS = ["key", "status", "run_id"]
"""Columns that decide which of several rows with one key counts."""

TIE_COLUMNS = (
    ["score", "status"],
    ["dataset", "fit_seconds", "identity", "message", "predict_seconds", "solver"],
)
"""Columns that decide between several rows of one run, before all columns together decide.

The columns that `Store.stored` reads come first, then those of a scan. So all readers choose the same row.
"""

NEEDED = ["key", "identity", "dataset", "solver", "outer", "inner", "status"]
"""Columns that every part has."""
