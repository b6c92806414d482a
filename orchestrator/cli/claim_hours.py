"""Estimate the core hours of experiments that undecided claims need, from stored trainings and from sizes."""

from collections.abc import Iterable, Mapping
from math import isfinite, nan, prod
from pathlib import Path
from typing import Any

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.config.compose import check_settings, compose_settings, known_names
from orchestrator.datasets.about import read_about
from orchestrator.engine.cost_model import base_seconds
from orchestrator.engine.typical_costs import typical_factors
from orchestrator.study.errors import ConfigError
from orchestrator.study.study import SELECTED, Arm, Study

_SHARE = {"pattern": 0.5}
"""Share of the grid that a search usually trains, by its name; 1 for others."""

_FOLDS = 5
"""Number of splits that is assumed of a splitter of unknown number."""

Observed = Mapping[tuple[str, str, str], float]
"""Mean seconds of a stored training by solver, dataset and profile."""


def experiment_hours(
    names: Iterable[str], studies: Mapping[str, Findings], config_dir: Path | None
) -> dict[str, float]:
    """Return the core hours of experiments.

    A dataset × solver with stored trainings of the same profile counts with their mean. Others count with the
    typical cost of the solver for a dataset of that size.

    Parameters
    ----------
    names : iterable of str
        Names of studies.
    studies : mapping of str to Findings
        Findings of stored studies, by name.
    config_dir : Path or None
        The user's folder of configurations.

    Returns
    -------
    dict of str to float
        Hours by name of the experiment. Names without an experiment are missing.
    """
    observed = _observed(studies.values())
    known = set(known_names("experiment", (), config_dir))
    return {name: _hours(name, observed, config_dir) for name in sorted(known.intersection(names))}


def _observed(studies: Iterable[Findings]) -> Observed:
    """Return the mean seconds of stored trainings.

    Parameters
    ----------
    studies : iterable of Findings
        Stored studies.

    Returns
    -------
    mapping of (str, str, str) to float
        Seconds by solver, dataset and profile.
    """
    frames = []
    for study in studies:
        rows = study.results.trials
        solver = {name: arm.get("solver", name) for name, arm in study.design.arms.items()}
        frames.append(
            pd.DataFrame(
                {
                    "solver": rows["solver"].astype(str).map(solver),
                    "dataset": rows["dataset"].astype(str),
                    "profile": rows["profile"].astype(str),
                    "seconds": rows["fit_seconds"].astype(float) + rows["predict_seconds"].astype(float),
                }
            )
        )
    if not frames:
        return {}
    keys = ["solver", "dataset", "profile"]
    means = pd.concat(frames).dropna().groupby(keys)["seconds"].mean().reset_index()
    names = means[keys].astype(str).itertuples(index=False, name=None)
    return dict(zip(names, means["seconds"].to_numpy(float).tolist(), strict=True))


def _hours(name: str, observed: Observed, config_dir: Path | None) -> float:
    """Return the core hours of an experiment.

    Parameters
    ----------
    name : str
        Name of the experiment.
    observed : mapping of (str, str, str) to float
        Mean seconds of stored trainings.
    config_dir : Path or None
        The user's folder of configurations.

    Returns
    -------
    float
        Hours; NaN if the experiment cannot be composed, or the size of a dataset is not known.
    """
    try:
        config = compose_settings([f"experiment={name}"], config_dir)
        study = check_settings(config).study
    except ConfigError:
        return nan
    factors = typical_factors(study.arms, study.protocol)
    points = _points(study, config_dir)
    total = 0.0
    for dataset in study.datasets:
        base = dataset.name.partition("[")[0]
        size = _size(config["dataset"].get(base, {}), dataset.params)
        for arm in study.arms:
            seconds = observed.get((arm.solver, dataset.name, study.protocol.profile), nan)
            if not isfinite(seconds):
                seconds = size * factors.get(arm.name, 1.0)
            total += _trainings(study, arm, points.get(arm.name, nan)) * seconds
    return total / 3600


def _size(node: Mapping[str, Any], params: Mapping[str, Any]) -> float:
    """Return the seconds of a training from the size of a dataset.

    Parameters
    ----------
    node : mapping of str to object
        Configuration of the dataset, with its description.
    params : mapping of str to object
        Arguments of its loader, among which a generator has `n`.

    Returns
    -------
    float
        Seconds before the factor of a solver; NaN if the size is not known.
    """
    about = read_about(node)
    n, classes = params.get("n", about.n), about.classes or 2
    return base_seconds(0.8 * n, classes) if isinstance(n, (int, float)) else nan


def _points(study: Study, config_dir: Path | None) -> dict[str, float]:
    """Return the number of candidates that a search trains, by arm.

    Parameters
    ----------
    study : Study
        Declared study.
    config_dir : Path or None
        The user's folder of configurations, for the experiment of a sample's source.

    Returns
    -------
    dict of str to float
        Numbers, which are estimates for searches that do not train the whole grid.
    """
    source = study.search.options.get("study")
    if study.search.target == "sample" and isinstance(source, str):
        try:
            return _points(check_settings(compose_settings([f"experiment={source}"], config_dir)).study, None)
        except ConfigError:
            return {}
    share = _SHARE.get(study.search.target, 1.0)
    return {
        arm.name: share * prod(len(values) for values in (arm.space or {}).values()) for arm in study.arms
    }


def _trainings(study: Study, arm: Arm, points: float) -> float:
    """Return the number of trainings of an arm on a dataset.

    Parameters
    ----------
    study : Study
        Declared study.
    arm : Arm
        One of its arms.
    points : float
        Number of its candidates.

    Returns
    -------
    float
        Number, which is an estimate for searches that do not train the whole grid.
    """
    outer, inner = (_n_splits(scheme) for scheme in (study.protocol.outer, study.protocol.inner))
    seed = study.protocol.seed
    outer *= len(seed) if isinstance(seed, (list, tuple)) else 1
    if study.search.target == SELECTED:
        return outer
    folds = study.search.options.get("folds")
    folds = folds if study.search.target == "sample" and isinstance(folds, int) else inner
    return outer * (folds * points + 1)


def _n_splits(scheme: Any) -> int:
    """Return the number of splits of a splitter.

    Parameters
    ----------
    scheme : object
        Number of folds, or a splitter with its arguments.

    Returns
    -------
    int
        Number of splits.
    """
    if isinstance(scheme, int):
        return scheme
    given = scheme.get("n_splits") if isinstance(scheme, Mapping) else None
    return given if isinstance(given, int) else _FOLDS
