"""Estimate the core hours of experiments that undecided claims need, from stored trainings and from sizes."""

from collections.abc import Iterable, Mapping
from itertools import product
from math import nan, prod
from pathlib import Path
from typing import Any

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.config.compose import compose_settings, known_names
from orchestrator.datasets.about import read_about
from orchestrator.engine.cost_model import base_seconds
from orchestrator.engine.typical_costs import Sizes, TypicalCost, typical_cost
from orchestrator.study.errors import ConfigError
from orchestrator.study.study import EVERY, SELECTED
from orchestrator.study.values import cell

_SHARE = {"pattern": 0.5}
"""Share of the grid that a search usually trains, by its name; 1 for others."""

_FOLDS = 5
"""Number of splits that is assumed of a splitter of unknown number."""

_FEATURES = 10
"""Number of features that is assumed of a dataset whose number is not known."""

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
        trainings = _trainings(config, config_dir)
    except ConfigError:
        return nan
    total, profile = 0.0, str(config["protocol"]["profile"])
    for dataset in config["datasets"]:
        node = config["dataset"].get(dataset, {})
        swept = {axis: values for axis, values in config["sweep"].items() if axis in node}
        for solver in config["solvers"]:
            declared = config["solver"].get(solver, {})
            space = {**(config["search"].get("space") or {}), **(declared.get("space") or {})}
            target = str(declared.get("_target_"))
            cost = typical_cost(solver, target, profile, space, declared)
            for setting in product(*swept.values()):
                label = ",".join(f"{axis}={cell(value)}" for axis, value in zip(swept, setting, strict=True))
                full = f"{dataset}[{label}]" if label else dataset
                expected = _seconds(full, {**node, **dict(zip(swept, setting, strict=True))}, cost)
                total += trainings * observed.get((solver, full, profile), expected)
    return total / 3600


def _seconds(dataset: str, node: Mapping[str, Any], cost: TypicalCost | None) -> float:
    """Return the expected seconds of a training, as a mean over the solver's space.

    Parameters
    ----------
    dataset : str
        Name of the dataset.
    node : mapping of str to object
        Configuration of the dataset with its description; a generator has `n`.
    cost : TypicalCost or None
        Typical cost of the solver; None if it is not known.

    Returns
    -------
    float
        Seconds; NaN if the number of samples is not known.
    """
    about = read_about(node)
    n, d, classes = node.get("n", about.n), about.d or _FEATURES, about.classes or 2
    if not isinstance(n, (int, float)):
        return nan
    sizes = Sizes(0.8 * n, d, classes)
    return base_seconds(sizes.n, classes) if cost is None else cost.mean_seconds(dataset, sizes)


def _trainings(config: Mapping[str, Any], config_dir: Path | None) -> float:
    """Return the number of trainings of all arms of a solver on a dataset.

    Parameters
    ----------
    config : mapping of str to object
        Composed configuration of an experiment.
    config_dir : Path or None
        The user's folder of configurations, for the source of a sample.

    Returns
    -------
    float
        Number, which is an estimate for searches that do not train the whole grid.
    """
    protocol, search = config["protocol"], config["search"]
    seeds = protocol.get("repeats") or (len(protocol["seed"]) if isinstance(protocol["seed"], list) else 1)
    outer, folds = (_n_splits(protocol[level]) for level in ("outer", "inner"))
    made = {axis for node in config["dataset"].values() for axis in node}
    arms = prod(len(values) for axis, values in config["sweep"].items() if axis not in made)
    if search["kind"] == SELECTED:
        return float(arms * seeds * outer)
    if search["kind"] == EVERY:
        return float(arms * seeds * outer * _candidates(search))
    if search["kind"] == "sample":
        source = compose_settings([f"experiment={search['study']}"], config_dir)["search"]
        inner = search["folds"] * _candidates(source)
    else:
        inner = folds * outer * _candidates(search)
    resolutions = search.get("resolution")
    refits = outer * (len(resolutions) if isinstance(resolutions, list) else 1)
    return float(arms * seeds * (inner + refits))


def _candidates(search: Mapping[str, Any]) -> float:
    """Return the number of candidates that a search trains, for all its resolutions.

    Parameters
    ----------
    search : mapping of str to object
        Configuration of the search.

    Returns
    -------
    float
        Number, which is an estimate for searches that do not train the whole grid.
    """
    space, resolution = search.get("space") or {}, search.get("resolution")
    if "budget" in search:
        return float(search["budget"])
    if resolution:
        each = resolution if isinstance(resolution, list) else [resolution]
        points = sum(size ** len(space) for size in each)
    else:
        points = prod(len(values) for values in space.values())
    return float(points * _SHARE.get(search["kind"], 1.0))


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
