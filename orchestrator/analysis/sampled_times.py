"""Estimated times of a study that measures a sample of the trainings of another one."""

from collections.abc import Collection, Iterator, Sequence
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis.design import Design
from orchestrator.analysis.sample_totals import Estimate, Sample, estimate_ratio, estimate_total
from orchestrator.analysis.summaries import WAITED_FROM, numbers, timing_rows
from orchestrator.store.results import StudyResults
from orchestrator.study.records import FINISHED, Status
from orchestrator.study.sample import Stratum, declared_refits, declared_strata, sampled_trainings
from orchestrator.study.study import SAMPLE, Arm
from orchestrator.study.trials import REFIT, Pair
from orchestrator.study.values import canonical_json, cell, stored_as_numbers

CPU, WALL = ("fit_cpu_seconds", "predict_cpu_seconds"), ("fit_seconds", "predict_seconds")
"""Columns whose sum is the CPU time of a training, and those of its wall time."""

_MISSING = -1
"""Position of a training that is not stored."""

MAX_WIDTH = 2.0
"""Ratio of the ends of an interval above which a report calls the interval wide."""

MAX_DISTURBED = 0.1
"""Share of disturbed trainings above which a report warns."""


def is_sample(design: Design) -> bool:
    """Return whether a study measures a sample of another study's trainings.

    Parameters
    ----------
    design : Design
        The design of the study.
    """
    return design.search.target == SAMPLE


def sample_weights(trials: pd.DataFrame, design: Design) -> np.ndarray:
    """Return the number of trainings of the source study that each trial represents.

    Parameters
    ----------
    trials : DataFrame
        Trials of a study.
    design : Design
        The design of the study.

    Returns
    -------
    ndarray of shape (n_trials,)
        1 for refits, and for all trials of a study that is not a sample.
    """
    weights = np.ones(len(trials))
    if not is_sample(design):
        return weights
    trials = trials.reset_index(drop=True)
    for (dataset, arm), rows in trials.groupby(["dataset", "solver"], sort=False):
        strata = declared_strata(design.search, str(dataset), str(arm))
        for stratum, positions in zip(strata, _positions(rows, design, str(arm), strata), strict=True):
            weights[[rows.index[each] for each in positions if each != _MISSING]] = stratum.weight
    return weights


def _positions(rows: pd.DataFrame, design: Design, arm: str, strata: Sequence[Stratum]) -> list[list[int]]:
    """Return the position among the rows of each drawn training, or `_MISSING`.

    Parameters
    ----------
    rows : DataFrame
        Trials of one dataset × arm.
    design : Design
        The design of the study.
    arm : str
        Name of the arm.
    strata : sequence of Stratum
        Its strata.

    Returns
    -------
    list of list of int
        A list for each stratum, with one entry for each drawn training.
    """
    declared = Arm.from_dict(design.arms[arm])
    of_params = {name: rows[f"param_{name}"] for name in sorted(declared.space)}
    # A column of numbers is text if another arm has texts on this axis.
    read = {name: float if column.dtype == float else cell for name, column in of_params.items()}
    columns = [rows["outer"].tolist(), rows["inner"].tolist(), *map(list, of_params.values())]
    known = {key: position for position, key in enumerate(zip(*columns, strict=True))}
    found = []
    for stratum in strata:
        params = [as_stored(stratum.candidate.value(name)) for name, as_stored in read.items()]
        found.append([known.get((*cell, *params), _MISSING) for cell in stratum.cells])
    return found


def sampled_totals(results: StudyResults, design: Design) -> pd.DataFrame:
    """Estimate the time of all trainings of the source study, by dataset × arm.

    Columns: dataset, solver, drawn and trainings (numbers of drawn trainings and of all, with refits),
    measured (drawn trainings that have a time), disturbed (share of those whose wall time exceeded
    `WAITED_FROM` times their CPU time), stopped (number of stopped trainings, which make the totals lower
    bounds), and for CPU time and wall time `<time>`, `<time>_se`, `<time>_low` and `<time>_high`, with the
    prefixes cpu_seconds and seconds. The estimates are NaN until every drawn training has a time.

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.
    """
    table = []
    for pair, rows in _timed(results, design):
        strata = declared_strata(design.search, *pair)
        row: dict[str, Any] = {"dataset": pair[0], "solver": pair[1]}
        n_refits = sum(best is not None for best in declared_refits(design.search, *pair))
        row["drawn"] = sampled_trainings(design.search, *pair)
        row["trainings"] = sum(stratum.size for stratum in strata) + n_refits
        row["measured"] = int(np.isfinite(_seconds(rows, WALL, design)).sum())
        fits = [numbers(rows[name]) for name in ("fit_seconds", "fit_cpu_seconds")]
        row["disturbed"] = float((fits[0] > WAITED_FROM * fits[1]).mean()) if len(rows) else nan
        row["stopped"] = int((rows["status"] == Status.TIMEOUT).sum())
        for name, columns in (("cpu_seconds", CPU), ("seconds", WALL)):
            sample = sample_of(rows, design, pair, columns)
            known = estimate_total(sample) if sample is not None else Estimate(nan, nan, nan, nan)
            row |= {name: known.value, f"{name}_se": known.se}
            row |= {f"{name}_low": known.low, f"{name}_high": known.high}
        table.append(row)
    return pd.DataFrame(table)


def sampled_ratios(results: StudyResults, design: Design) -> pd.DataFrame:
    """Estimate the ratio of the CPU times of each arm and the first one, by dataset.

    Columns: dataset, solver, reference, common (number of cells on which both were measured), ratio, low,
    high, stopped. Pairs without a complete sample are left out.

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.
    """
    samples = {pair: sample_of(rows, design, pair, CPU) for pair, rows in _timed(results, design)}
    reference, table = next(iter(design.arms)), []
    for (dataset, arm), sample in samples.items():
        other = samples.get((dataset, reference))
        if arm == reference or sample is None or other is None:
            continue
        ratio = estimate_ratio(sample, other)
        is_common = np.isin(sample.names, other.names)
        row: dict[str, Any] = {"dataset": dataset, "solver": arm, "reference": reference}
        row["common"] = int(np.isfinite(sample.costs[is_common]).sum())
        row |= {"ratio": ratio.value, "low": ratio.low, "high": ratio.high, "stopped": ratio.stopped}
        table.append(row)
    return pd.DataFrame(table)


def with_estimated_searches(
    frame: pd.DataFrame, totals: pd.DataFrame, merged: Collection[str] = ()
) -> pd.DataFrame:
    """Return average seconds with estimated times of whole searches in place of sums over a sample.

    Parameters
    ----------
    frame : DataFrame
        As `average_seconds` returns it.
    totals : DataFrame
        As `sampled_totals` returns it. If it is not empty, the frame gets the columns search_low and
        search_high, the ends of the interval, and represented, the number of trainings of the source study.
    merged : collection of str, default ()
        Names of samples that are merged with other studies. Times of their searches are not estimated, and
        are NaN, because they would stand beside sums.
    """
    if frame.empty:
        return frame
    if totals.empty:
        if not merged:
            return frame
        ours = [any(arm.endswith(f"@{name}") for name in merged) for arm in frame["solver"]]
        return frame.assign(study_seconds=frame["study_seconds"].mask(np.array(ours, dtype=bool)))
    found = totals.set_index(["dataset", "solver"])
    index = pd.MultiIndex.from_frame(frame[["dataset", "solver"]])
    columns = {
        "study_seconds": "seconds",
        "search_low": "seconds_low",
        "search_high": "seconds_high",
        "represented": "trainings",
    }
    return frame.assign(**{name: found[column].reindex(index).to_numpy() for name, column in columns.items()})


def _timed(results: StudyResults, design: Design) -> Iterator[tuple[Pair, pd.DataFrame]]:
    """Yield each dataset × arm of the design with its trials of the profile `timing`.

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.

    Yields
    ------
    pair, rows
        Nothing for a study that is not a sample.
    """
    if not is_sample(design):
        return
    trials = timing_rows(results.trials)
    groups = dict(iter(trials.groupby(["dataset", "solver"], sort=False)))
    for pair in design.pairs:
        yield pair, groups.get(pair, trials.iloc[:0])


def sample_of(rows: pd.DataFrame, design: Design, pair: Pair, columns: Sequence[str]) -> Sample | None:
    """Return the measured sample of a dataset × arm; None if a drawn training has no time yet.

    Parameters
    ----------
    rows : DataFrame
        Its trials of the profile `timing`.
    design : Design
        The design of the study.
    pair : (str, str)
        Names of the dataset and the arm.
    columns : sequence of str
        Columns whose sum is the time of a training.
    """
    strata = declared_strata(design.search, *pair)
    seconds = _seconds(rows, columns, design)
    refits = seconds[(rows["inner"] == REFIT).to_numpy()]
    wanted = declared_refits(design.search, pair[0], pair[1])
    positions = _positions(rows, design, pair[1], strata)
    costs = np.full((len(strata), max((len(each) for each in positions), default=1)), nan)
    for index, each in enumerate(positions):
        if _MISSING in each:
            return None
        costs[index, : len(each)] = seconds[each]
    measured = np.isfinite(costs).sum(axis=1).tolist() == [len(each) for each in positions]
    if (
        not wanted
        or not measured
        or len(refits) < sum(best is not None for best in wanted)
        or np.isnan(refits).any()
    ):
        return None
    return Sample(
        names=tuple(canonical_json([each.candidate.text, each.cells]) for each in strata),
        sizes=np.array([each.size for each in strata], dtype=float),
        costs=costs,
        points=_points(strata),
        refits=float(refits.sum()),
        stopped=bool((rows["status"] == Status.TIMEOUT).any()),
    )


def _seconds(rows: pd.DataFrame, columns: Sequence[str], design: Design) -> np.ndarray:
    """Return the time of each training; the time limit for one that was stopped without a time.

    Parameters
    ----------
    rows : DataFrame
        Trials of a dataset × arm.
    columns : sequence of str
        Columns whose sum is the time.
    design : Design
        The design of the study.
    """
    fit, predict = (numbers(rows[name]) for name in columns)
    stopped = (rows["status"] == Status.TIMEOUT).to_numpy(dtype=bool)
    limit = design.max_seconds or 0.0
    fit = np.where(stopped & np.isnan(fit), limit, fit)
    predict = np.where(stopped & np.isnan(predict), 0.0, predict)
    return np.where(rows["status"].isin(FINISHED), fit + predict, nan)


def _points(strata: Sequence[Stratum]) -> np.ndarray:
    """Return the position of each candidate on the axes of the grid, from -1 to 1.

    Parameters
    ----------
    strata : sequence of Stratum
        Strata of a dataset × arm.
    """
    params = [dict(stratum.candidate.params) for stratum in strata]
    axes = []
    for name in dict.fromkeys(name for each in params for name in each):
        values: list[Any] = [each.get(name) for each in params]
        distinct = list({canonical_json(value): value for value in values}.values())
        ordered = sorted(distinct) if stored_as_numbers(distinct) else distinct
        ranks = {canonical_json(value): rank for rank, value in enumerate(ordered)}
        middle = (len(ranks) - 1) / 2
        axes.append([(ranks[canonical_json(value)] - middle) / max(middle, 0.5) for value in values])
    return np.array(axes).reshape(len(axes), len(strata)).T.copy()
