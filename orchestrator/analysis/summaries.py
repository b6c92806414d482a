"""Tables of a study that need no statistical tests: coverage, scores, effort, time, selections, failures.

The functions of a study take its stored results and its design, and return a long frame: one row per
dataset × arm in declared order, unless their description names other rows.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import nan, sqrt
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis.design import Design
from orchestrator.analysis.paired_means import half_predictions, without_ties
from orchestrator.store.results import StudyResults
from orchestrator.study.failures import NUMBERS
from orchestrator.study.records import FINISHED, Status
from orchestrator.study.schemes import n_repeats
from orchestrator.study.trials import REFIT, Pair
from orchestrator.study.values import is_number, stored_as_numbers

_STOPPING_SHOWN = 3
"""Largest number of stopping criteria that a row names."""

GAP_LEVEL = 1e-2
"""Claimed relative duality gap above which a refit is marked. The objective may be more than one per cent off
its optimum, ten times the tolerance (10⁻³) to which support vector machines are commonly trained."""

WAITED_FROM = 1.1
"""Ratio of wall time to CPU time above which another process was using the core; it is 1.00 to 1.03 on an
idle machine."""

STATUSES = tuple(map(str, Status))


Rows = dict[str, np.ndarray]
"""The rows of one dataset × arm: columns by name, numbers as floats (NaN if there is none)."""


def finished(rows: Rows) -> Rows:
    """Return the rows of trainings that gave a model.

    Parameters
    ----------
    rows : dict of str to ndarray
        Rows of one dataset × arm, with their status.
    """
    mask = np.array([status in FINISHED for status in rows["status"]], dtype=bool)
    return {name: values[mask] for name, values in rows.items()}


def _finite(values: np.ndarray) -> np.ndarray:
    """Return the finite numbers.

    Parameters
    ----------
    values : ndarray
        Numbers, NaN where there is none.
    """
    return values[np.isfinite(values)]


def _mean(values: np.ndarray) -> float:
    """Return the mean of the finite numbers; NaN if there is none.

    Parameters
    ----------
    values : ndarray
        Numbers, NaN where there is none.
    """
    values = _finite(values)
    return float(values.mean()) if len(values) else nan


def numbers(column: pd.Series) -> np.ndarray:
    """Return a column as floats, NaN for entries that are not numbers.

    Parameters
    ----------
    column : Series
        Values of any type.
    """
    return pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)


def rows_by_pair(
    frame: pd.DataFrame, pairs: Iterable[Pair], measures: Sequence[str], others: Sequence[str] = ()
) -> Iterator[tuple[Pair, Rows]]:
    """Yield each pair with its rows in the order of the frame; a pair may have no rows.

    Parameters
    ----------
    frame : DataFrame
        With the columns dataset and solver.
    pairs : iterable of (dataset, arm)
        The pairs to yield, in that order.
    measures, others : sequence of str
        Columns to return as floats, and columns to return unchanged. Columns that the frame lacks are NaN.

    Yields
    ------
    pair, rows
        The pair, and its rows by column.
    """
    indices = frame.groupby(["dataset", "solver"], sort=False).indices
    frame = frame.reindex(columns=[*measures, *others])
    columns = {name: numbers(frame[name]) for name in measures}
    columns |= {name: frame[name].to_numpy(dtype=object) for name in others}
    columns["index"] = np.arange(len(frame))
    for pair in pairs:
        index = indices.get(pair, [])
        yield pair, {name: values[index] for name, values in columns.items()}


Summary = Callable[[Pair, Rows], dict[str, Any]]
"""Returns the columns of a dataset × arm from its rows; an empty dict leaves the pair out."""


def _by_pair(
    frame: pd.DataFrame, design: Design, summary: Summary, measures: Sequence[str], others: Sequence[str] = ()
) -> pd.DataFrame:
    """Return a row for each dataset × arm with a summary that is not empty.

    Parameters
    ----------
    frame : DataFrame
        Trials, refits or selections.
    design : Design
        The design of the study.
    summary : callable
        Returns the columns of a pair from its rows.
    measures : sequence of str
        Columns that are read as numbers.
    others : sequence of str, default=()
        Columns that are read unchanged.
    """
    found = [
        (pair, summary(pair, rows)) for pair, rows in rows_by_pair(frame, design.pairs, measures, others)
    ]
    return pd.DataFrame(
        [{"dataset": dataset, "solver": arm} | values for (dataset, arm), values in found if values]
    )


def count_trials(results: StudyResults, design: Design) -> pd.DataFrame:
    """Count the trials of every dataset × arm by status.

    Columns: dataset, solver, planned (missing if the search determines it while it runs), stored, not_run
    (missing if planned is), one column per status, scored (trials with a score, of any status), refits (outer
    folds with a score).

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.
    """
    refits = dict(rows_by_pair(results.outer, design.pairs, ["score"]))

    def summary(pair: Pair, rows: Rows) -> dict[str, Any]:
        planned, stored = design.planned(*pair), len(rows["status"])
        if planned is not None:  # earlier versions trained a single candidate on inner splits, too
            planned = max(planned, stored)
        return {
            "planned": planned,
            "stored": stored,
            "not_run": None if planned is None else planned - stored,
            **{name: int((rows["status"] == name).sum()) for name in STATUSES},
            "scored": len(_finite(rows["score"])),
            "refits": len(_finite(refits[pair]["score"])),
        }

    frame = _by_pair(results.trials, design, summary, ["score"], ["status"])
    return frame.astype({"planned": "Int64", "not_run": "Int64"}) if len(frame) else frame


def average_scores(results: StudyResults, design: Design, metric: str | None = None) -> pd.DataFrame:
    """Average a metric over outer folds.

    Columns: dataset, solver, metric, n_folds, complete, mean, se (population σ/√n), corrected_se
    (Nadeau–Bengio), repeat_sd (of the means of several seeds or repeats, if complete), best (highest mean
    among complete arms).

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.
    metric : str, optional
        Name of a further recorded metric. By default, the metric that selects candidates.
    """
    repeats = n_repeats(design.protocol)
    column = "score" if metric is None else f"score_{metric}"

    def summary(pair: Pair, rows: Rows) -> dict[str, Any]:
        values = _finite(rows[column])
        return {
            "metric": metric or design.metric,
            "n_folds": len(values),
            "complete": 0 < len(values) == design.n_outer(pair[0]),
            "mean": _mean(values),
            "se": standard_error(values),
            "corrected_se": corrected_standard_error(values, test_share(rows)),
            "repeat_sd": _repeat_sd(values, repeats) if len(values) == design.n_outer(pair[0]) else nan,
        }

    frame = _by_pair(results.outer, design, summary, [column, "n_train", "n_test"])
    if frame.empty:
        return frame
    means = frame["mean"].where(frame["complete"])
    of_dataset = means.groupby(frame["dataset"])
    below = (of_dataset.transform("max") - means).set_axis(frame["dataset"])
    is_highest = without_ties(below, half_predictions(metric or design.metric, n_tested(results.outer))) == 0
    return frame.assign(best=is_highest.to_numpy() & (of_dataset.transform("count") > 1))


def standard_error(scores: np.ndarray) -> float:
    """Return σ/√n with the population σ, as in Strack (2013), eq. 7.4: descriptive, NaN below two scores.

    Parameters
    ----------
    scores : ndarray
        Scores of the outer folds.
    """
    if len(scores) < 2:
        return nan
    return float(np.std(scores)) / sqrt(len(scores))


def corrected_standard_error(scores: np.ndarray, test_share: float) -> float:
    """Return the standard error corrected for shared training rows of folds: s·√(1/n + n_test/n_train).

    Nadeau & Bengio, *Inference for the generalization error*, 2003. One 5-fold cross-validation gives
    1.5 times the naive s/√n.

    Parameters
    ----------
    scores : ndarray (n_folds,)
        Scores of the outer folds.
    test_share : float
        Ratio n_test / n_train of a split, 0.25 for five folds.
    """
    if len(scores) < 2:
        return nan
    return float(np.std(scores, ddof=1)) * sqrt(1 / len(scores) + test_share)


def test_share(rows: Rows) -> float:
    """Return the mean number of test rows divided by the mean number of training rows.

    Parameters
    ----------
    rows : dict of str to ndarray
        Columns n_train and n_test of the refits.
    """
    train, test = _mean(rows["n_train"]), _mean(rows["n_test"])
    return test / train if train > 0 and test > 0 else nan


def _repeat_sd(scores: np.ndarray, repeats: int) -> float:
    """Return the standard deviation of the means of repeats; NaN for a single repeat.

    Parameters
    ----------
    scores : ndarray
        Scores of the outer folds, one repeat after another.
    repeats : int
        Number of repeats.
    """
    if repeats < 2 or len(scores) % repeats:
        return nan
    return float(scores.reshape(repeats, -1).mean(axis=1).std(ddof=1))


def n_tested(outer: pd.DataFrame) -> pd.Series:
    """Return how many predictions a mean score averages, by dataset: the largest number of all arms.

    Parameters
    ----------
    outer : DataFrame
        Refits, with their number of test rows.
    """
    rows = outer.assign(n_test=numbers(outer["n_test"])).groupby(["dataset", "solver"])["n_test"].sum()
    return rows.groupby(level="dataset").max()


def average_effort(results: StudyResults, design: Design) -> pd.DataFrame:
    """Average the machine-independent work that refits report, and summarise how they stopped.

    Columns: dataset, solver, n_fits (refits that gave a model; the others are left out), n_stopped (those
    that timed out, whose counts are lower bounds), n_iter, n_kernel_evals, n_sv, sv_share, gap_median,
    gap_max (claimed relative gaps), n_gap_above (refits whose gap is above `GAP_LEVEL`), not_converged,
    stopping (text, most frequent first), marked (whether a gap is above the level or a refit did not
    converge). NaN where a solver does not publish the number.

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.
    """
    work = ("n_iter", "n_kernel_evals", "n_sv", "sv_share")

    def summary(pair: Pair, rows: Rows) -> dict[str, Any]:
        fits = finished(rows)
        gaps = fits["gap"][~np.isnan(fits["gap"])]  # an infinite gap claims nothing, and is kept
        above = int((gaps > GAP_LEVEL).sum())
        not_converged = sum(not (pd.isna(converged) or converged) for converged in fits["converged"])
        return {
            "n_fits": len(fits["status"]),
            "n_stopped": _n_stopped(fits),
            **{name: _mean(fits[name]) for name in work},
            "gap_median": float(np.median(gaps)) if len(gaps) else nan,
            "gap_max": max(gaps, default=nan),
            "n_gap_above": above,
            "not_converged": not_converged,
            "stopping": _stopping(fits["stopping"]),
            "marked": bool(above or not_converged),
        }

    return _by_pair(results.outer, design, summary, [*work, "gap"], ["status", "converged", "stopping"])


def _n_stopped(rows: Rows) -> int:
    return int((rows["status"] == Status.TIMEOUT).sum())


def _stopping(texts: np.ndarray) -> str:
    counts = Counter(str(text) for text in texts if not pd.isna(text) and str(text)).most_common()
    kinds = [f"{text} ({count}×)" for text, count in counts[:_STOPPING_SHOWN]]
    others = sum(count for _, count in counts[_STOPPING_SHOWN:])
    return "; ".join([*kinds, f"others ({others}×)"] if others else kinds)


def average_seconds(results: StudyResults, design: Design) -> pd.DataFrame:
    """Average seconds over refits of the profile `timing`; empty without such rows.

    Columns: dataset, solver, n_fits (refits that gave a model), n_stopped (refits that timed out; if there
    are any, fit_seconds and fit_cpu_seconds are lower bounds, and predict_seconds is unknown), complete,
    fit_seconds, fit_se, fit_corrected_se, fit_cpu_seconds, predict_seconds, study_seconds (all stored
    trainings and predictions of the dataset × arm together), n_trainings, n_trainings_stopped, wall_per_cpu
    (wall time divided by CPU time, of the refits or of all trainings, whichever is larger; NaN if not
    recorded).

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.
    """
    laps = ("fit_seconds", "fit_cpu_seconds", "predict_seconds", "n_train", "n_test")
    everything = dict(rows_by_pair(timing_rows(results.trials), design.pairs, laps[:3], ["status"]))

    def summary(pair: Pair, rows: Rows) -> dict[str, Any]:
        fits, whole = finished(rows), everything[pair]
        seconds, n_stopped = _finite(fits["fit_seconds"]), _n_stopped(fits)
        if not len(seconds):
            return {}
        errors = seconds if n_stopped == 0 else np.array([])
        fitting, predicting = _finite(whole["fit_seconds"]), _finite(whole["predict_seconds"])
        return {
            "n_fits": len(seconds),
            "n_stopped": n_stopped,
            "complete": len(seconds) == design.n_outer(pair[0]),
            "fit_seconds": float(seconds.mean()),
            "fit_se": standard_error(errors),
            "fit_corrected_se": corrected_standard_error(errors, test_share(rows)),
            "fit_cpu_seconds": _mean(fits["fit_cpu_seconds"]),
            "predict_seconds": _mean(fits["predict_seconds"]) if n_stopped == 0 else nan,
            "study_seconds": float(fitting.sum() + predicting.sum()),
            "n_trainings": len(fitting),
            "n_trainings_stopped": _n_stopped(whole),
            "wall_per_cpu": np.fmax(_wall_per_cpu(fits), _wall_per_cpu(whole)),
        }

    return _by_pair(timing_rows(results.outer), design, summary, laps, ["status"])


def _wall_per_cpu(rows: Rows) -> float:
    wall, cpu = (rows[f"fit_{name}"] for name in ("seconds", "cpu_seconds"))
    both = np.isfinite(wall) & np.isfinite(cpu)
    total = cpu[both].sum()
    return float(wall[both].sum() / total) if total > 0 else nan


def timing_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the profile `timing`, whose seconds are comparable.

    Parameters
    ----------
    frame : DataFrame
        Trials or refits, with their profile.
    """
    return frame[frame["profile"] == "timing"]


def summarise_selections(results: StudyResults, design: Design) -> pd.DataFrame:
    """Summarise the candidates that the inner search selected.

    Columns: dataset, solver, n_folds, chosen (text, most frequent first), at_edge (outer folds whose choice
    lies on the border of the space), `low_<param>` and `high_<param>` (outer folds at the lower and at
    the upper end), inner_score, n_tied (mean number of candidates sharing the best score), n_candidates,
    n_failed (sums over outer folds).

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.
    """
    params = [name for name in map(str, results.selections.columns) if name.startswith("param_")]
    counts = ("inner_score", "n_tied", "n_candidates", "n_failed")
    as_numbers = {name: numbers(results.selections[name]) for name in params}

    def summary(pair: Pair, rows: Rows) -> dict[str, Any]:
        indices = rows["index"]
        if not len(indices):
            return {}
        space = design.space(*pair)
        edges = {
            name: _edges(as_numbers.get(f"param_{name}"), indices, values) for name, values in space.items()
        }
        at_edge = np.any([ends for both in edges.values() for ends in both], axis=0)
        return {
            "n_folds": len(indices),
            "chosen": _chosen(rows, params),
            "at_edge": int(at_edge.sum()),
            **{f"low_{name}": int(low.sum()) for name, (low, _) in edges.items()},
            **{f"high_{name}": int(high.sum()) for name, (_, high) in edges.items()},
            "inner_score": _mean(rows["inner_score"]),
            "n_tied": _mean(rows["n_tied"]),
            "n_candidates": int(_finite(rows["n_candidates"]).sum()),
            "n_failed": int(_finite(rows["n_failed"]).sum()),
        }

    return _by_pair(results.selections, design, summary, counts, params)


def _edges(
    column: np.ndarray | None, indices: np.ndarray, values: Sequence[Any] | Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows selected the smallest and which the largest value; none for a range.

    Parameters
    ----------
    column : ndarray or None
        Chosen values of all selections; None if none was recorded.
    indices : ndarray
        Positions of the selections in the column.
    values : sequence or mapping
        The searched values, or the ends of a range.
    """
    limits = [] if isinstance(values, Mapping) else [float(value) for value in values if is_number(value)]
    if column is None or len(set(limits)) < 2:
        nowhere = np.zeros(len(indices), dtype=bool)
        return nowhere, nowhere
    chosen = column[indices]
    return chosen == min(limits), chosen == max(limits)


def _chosen(rows: Rows, params: Sequence[str]) -> str:
    names = [name.removeprefix("param_") for name in params]
    counts = Counter(
        tuple((name, value) for name, value in zip(names, point, strict=True) if pd.notna(value))
        for point in zip(*(rows[name] for name in params), strict=True)
    )
    texts = {point: ", ".join(f"{name}={_short(value)}" for name, value in point) for point in counts}
    if len(set(texts.values())) < len(texts):  # values that differ in a late digit
        texts = {point: ", ".join(f"{name}={value}" for name, value in point) for point in counts}
    return "; ".join(f"{texts[point]} ({count}×)" for point, count in counts.most_common() if point)


def _short(value: float | str) -> str:
    return f"{value:g}" if isinstance(value, float) else value


def two_axes(space: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the two hyper-parameters with several listed numbers, if a space has exactly two; else None.

    Parameters
    ----------
    space : mapping of str to any
        Searched values by hyper-parameter.
    """
    several = {name: values for name, values in space.items() if len(values) > 1}
    numeric = all(
        stored_as_numbers(values) and not isinstance(values, Mapping) for values in several.values()
    )
    if len(several) != 2 or not numeric:
        return None
    x, y = several
    return x, y


def count_choices(results: StudyResults, design: Design) -> pd.DataFrame:
    """Count the selections of each candidate over all datasets and outer folds.

    Columns: solver, x, y (values of the arm's two hyper-parameters), x_name, y_name, count. Only arms with
    exactly two numeric hyper-parameters of several values each appear.

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.
    """
    table = []
    by_arm = dict(iter(results.selections.groupby("solver", sort=False)))
    for arm, description in design.arms.items():
        axes, rows = two_axes(description.get("space", {})), by_arm.get(arm)
        columns = [f"param_{name}" for name in axes or ()]
        if axes is None or rows is None or not set(columns) <= set(rows):
            continue
        points = rows[columns].dropna().apply(pd.to_numeric).to_numpy(dtype=float)
        x_name, y_name = axes
        for (x, y), count in sorted(Counter(map(tuple, points)).items()):
            table.append({"solver": arm, "x_name": x_name, "x": x, "y_name": y_name, "y": y, "count": count})
    return pd.DataFrame(table)


def group_failures(results: StudyResults, design: Design) -> pd.DataFrame:
    """List every kind of failure with its first message and where it happened.

    Messages that differ in numbers only are one kind. Columns: status, count, scored (the number of them that
    nevertheless have a score), solvers, datasets, first (where), message.

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.
    """
    rows = results.trials[results.trials["status"] != Status.OK]
    if rows.empty:
        return pd.DataFrame()
    rows = rows.assign(message=rows["message"].fillna("").astype(str))
    kind = rows["message"].str.split("\n").str[0].str.replace(NUMBERS, "#", regex=True)
    table = []
    for (status, _), group in rows.groupby([rows["status"], kind], sort=False):
        first = group.iloc[0]
        fold = "refit" if first["inner"] == REFIT else f"inner fold {first['inner']}"
        table.append(
            {
                "status": status,
                "count": len(group),
                "scored": int(np.isfinite(numbers(group["score"])).sum()),
                "solvers": ", ".join(_listed(group["solver"], design.arms)),
                "datasets": ", ".join(_listed(group["dataset"], design.datasets)),
                "first": f"{first['solver']} on {first['dataset']}, outer fold {first['outer']}, {fold}",
                "message": first["message"].strip() or "(no message)",
            }
        )
    return pd.DataFrame(table).sort_values("count", ascending=False, kind="stable", ignore_index=True)


def _listed(column: pd.Series, order: Iterable[str]) -> list[str]:
    present = set(column)
    return [name for name in order if name in present]
