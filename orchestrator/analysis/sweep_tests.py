"""Tests of a sweep: of all its settings at once, and of the setting selected by inner scores."""

from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis.design import Design
from orchestrator.analysis.paired_means import PairedMeans, of_units, without_ties
from orchestrator.analysis.pairwise import verdict
from orchestrator.analysis.sign_flips import step_down
from orchestrator.analysis.signed_rank import DECIMALS, hodges_lehmann, signed_rank
from orchestrator.analysis.statistics import holm
from orchestrator.analysis.summaries import numbers
from orchestrator.analysis.sweeps import sweeps
from orchestrator.store.results import StudyResults


@dataclass(frozen=True)
class MaxT:
    """The tests of several settings against one baseline, on the same datasets.

    Attributes
    ----------
    t : ndarray (n_settings,)
        |Σ sign·rank| / √Σ rank²; NaN without datasets.
    single_step, p : ndarray (n_settings,)
        Adjusted p-values, of one step and of the step-down method.
    """

    t: np.ndarray
    single_step: np.ndarray
    p: np.ndarray


def max_t(differences: np.ndarray) -> MaxT:
    """Test whether any setting differs from the baseline, and which (Westfall and Young 1993).

    Under the null hypothesis, a dataset's row of differences and the row with all signs changed are equally
    likely. Similar settings cost little power, because their statistics are correlated. The smallest p is
    2^(1−n) for any number of settings. For up to 16 datasets, all 2^n patterns of signs are counted. For
    more, B = 99,999 random patterns are drawn with a fixed seed. If c of them reach the observed statistic, p
    is (c + 1)/(B + 1).

    Parameters
    ----------
    differences : ndarray (n_datasets, n_settings)
        Differences from the baseline.

    References
    ----------
    P. Westfall and S. Young (1993), *Resampling-Based Multiple Testing*; B. Phipson and G. Smyth (2010),
    Permutation p-values should never be zero, *Statistical Applications in Genetics and Molecular Biology* 9.
    """
    values = np.round(differences, DECIMALS)
    n, n_settings = values.shape
    if n == 0:
        nothing = np.full(n_settings, np.nan)
        return MaxT(nothing, nothing, nothing)
    ranks = pd.DataFrame(np.abs(values)).rank().to_numpy() * np.sign(values)  # Pratt's: zeros are ranked, too
    norms = np.sqrt((ranks**2).sum(axis=0))
    ranks = ranks / np.where(norms > 0, norms, 1.0)
    t = np.abs(ranks.sum(axis=0))
    single, p, _, total = step_down(ranks, t)
    return MaxT(t, single / total, p)


def curves(design: Design, means: PairedMeans) -> pd.DataFrame:
    """Test all settings of each sweep against the one declared first, on the units that all completed.

    Columns: sweep, axis, setting, reference, solver, n, t, p_single_step, p (step-down), estimate, low, high,
    confidence (the band: Hodges–Lehmann intervals at 1 − α/m for m settings; NaN if there are too few
    datasets for it).

    Parameters
    ----------
    design : Design
        The design of the study.
    means : PairedMeans
        Mean scores as tests compare them.
    """
    table = []
    for title, axis, arms in sweeps(design) if len(means.means) else ():
        reference, *others = arms
        complete = means.means.reindex(columns=list(arms)).dropna().index
        differences = pd.DataFrame({arm: means.difference(arm, reference)[complete] for arm in others})
        found = max_t(differences.to_numpy())
        for i, arm in enumerate(others):
            band = hodges_lehmann(differences[arm], 1 - design.alpha / len(others))
            table.append(
                {"sweep": title, "axis": axis, "setting": arms[arm], "reference": arms[reference]}
                | {"solver": arm, "n": len(complete)}
                | {"t": found.t[i], "p_single_step": found.single_step[i], "p": found.p[i]}
                | asdict(band)
            )
    frame = pd.DataFrame(table)
    ends = ["low", "high", "confidence"]
    return frame.assign(**frame[ends].astype(float)) if len(frame) else frame


def selected_scores(inner: np.ndarray, outer: np.ndarray) -> np.ndarray:
    """Return the outer score of the setting with the highest inner score on each split; ties go to the first.

    Parameters
    ----------
    inner, outer : ndarray (n_settings, n_splits)
        Scores in declared order, the baseline first.

    Returns
    -------
    ndarray (n_splits,)
        The outer score of the chosen setting.
    """
    chosen = np.argmax(np.round(inner, DECIMALS), axis=0)
    return np.take_along_axis(outer, chosen[np.newaxis], axis=0)[0]


def selected(results: StudyResults, design: Design, paired: PairedMeans) -> pd.DataFrame:
    """Compare the arm `[axis=selected]` of each sweep with the setting declared first.

    On each outer split the arm uses the value with the highest stored inner score, so no outer score takes
    part in the selection. The value that looks best afterwards is biased.

    Columns: sweep, axis, solver (the derived arm), reference, datasets, mean, the fields of `SignedRank` and
    `Shift` for the difference to the reference, p_holm (over the sweeps of the study), family, verdict.

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.
    paired : PairedMeans
        Mean scores as tests compare them.
    """
    means = paired.by_dataset
    declared = list(sweeps(design)) if len(means) else []
    if not declared:
        return pd.DataFrame()
    inner = _wide(results.selections, "inner_score")
    outer = _wide(results.outer, "score")
    table = []
    for title, axis, arms in declared:
        names, scores = list(arms), {}
        for dataset in means.reindex(columns=names).dropna().index:
            splits = [frame.get((dataset, arm)) for arm in names for frame in (inner, outer)]
            if all(each is not None and len(each) == design.n_outer(dataset) for each in splits):
                chosen = selected_scores(np.array(splits[::2]), np.array(splits[1::2]))
                scores[dataset] = float(chosen.mean())
        values = pd.Series(scores, dtype=float).reindex(means.index)
        gains = pd.DataFrame({0: []}, dtype=float)
        if scores:
            gains = without_ties(values - means[names[0]], paired.ties_below).to_frame()
        differences = of_units(gains, design.families).iloc[:, 0].dropna().round(DECIMALS)
        table.append(
            {"sweep": title, "axis": axis, "solver": f"{title}[{axis}=selected]", "reference": names[0]}
            | {"datasets": ", ".join(scores), "mean": values.mean()}
            | asdict(signed_rank(differences))
            | asdict(hodges_lehmann(differences, 1 - design.alpha))
        )
    frame = pd.DataFrame(table)
    frame = frame.assign(p_holm=holm(frame["p"].to_numpy()), family=len(frame))
    return frame.assign(verdict=[_verdict(row, design) for row in frame.to_dict("records")])


def _verdict(row: Mapping[Hashable, Any], design: Design) -> str:
    n, n_zero, size = (int(row[name]) for name in ("n", "n_zero", "family"))
    direction = row["w_plus"] - row["w_minus"]
    return verdict(row["p_holm"], direction, n, n_zero, size, design.alpha, unit=design.unit)


def _wide(frame: pd.DataFrame, column: str) -> dict[tuple[str, str], np.ndarray]:
    """Return the finite numbers of a column by dataset and arm, in the order of the outer splits.

    Parameters
    ----------
    frame : DataFrame
        Refits or selections.
    column : str
        Name of the column.
    """
    if frame.empty:
        return {}
    rows = frame.assign(value=numbers(frame[column])).dropna(subset="value")
    rows = rows.sort_values("outer", kind="stable")
    return {
        (str(dataset), str(arm)): group.to_numpy()
        for (dataset, arm), group in rows.groupby(["dataset", "solver"], sort=False)["value"]
    }
