"""Estimate the core hours of experiments that undecided claims need, without loading their data."""

from collections.abc import Iterable, Mapping
from math import nan
from pathlib import Path
from typing import Any

from orchestrator.analysis.findings import Findings
from orchestrator.claims.needs import Hours
from orchestrator.claims.terms import Terms
from orchestrator.config.compose import compose_settings, known_names
from orchestrator.config.schema import check_settings
from orchestrator.datasets.about import read_about
from orchestrator.engine.cost_model import Shape
from orchestrator.engine.planning import declared_trainings, observed_pairs, planned_line, with_repeats
from orchestrator.engine.typical_costs import dataset_key, typical_costs
from orchestrator.store.results import PairState
from orchestrator.study.errors import ConfigError
from orchestrator.study.sample import requested_repeats
from orchestrator.study.schemes import n_repeats
from orchestrator.study.study import SAMPLE, Protocol, Study

_FEATURES, _CLASSES = 10, 2
"""Numbers of features and of classes that are assumed of a dataset for which they are not known."""


def experiment_hours(
    names: Iterable[str],
    studies: Mapping[str, Findings],
    differences: Mapping[str, Terms],
    config_dir: Path | None,
) -> dict[str, Hours]:
    """Return the core hours of experiments, as `svmbench plan` estimates them.

    The sizes of the datasets are those of their stored study or of their configuration, and the splits are
    assumed to be equally large.

    Parameters
    ----------
    names : iterable of str
        Names of studies.
    studies : mapping of str to Findings
        Findings of stored studies, by name.
    differences : mapping of str to Terms
        Differences between stored studies and their experiments, by name.
    config_dir : Path or None
        The user's folder of configurations.

    Returns
    -------
    dict of str to Hours
        Hours by name of the experiment. Names without an experiment are missing.
    """
    known = set(known_names("experiment", (), config_dir))
    found = {}
    for name in sorted(known.intersection(names)):
        try:
            found[name] = _hours(name, studies.get(name), differences.get(name, Terms()), config_dir)
        except ConfigError:  # it is reported where the experiment is run
            found[name] = Hours(nan, nan)
    return found


def _hours(name: str, stored: Findings | None, terms: Terms, config_dir: Path | None) -> Hours:
    """Return the core hours of an experiment.

    Parameters
    ----------
    name : str
        Name of the experiment.
    stored : Findings or None
        Findings of its stored study; None if nothing is stored.
    terms : Terms
        Differences between the stored study and the experiment. What has other terms does not
        count.
    config_dir : Path or None
        The user's folder of configurations.

    Returns
    -------
    Hours
        Hours; NaN if the size of a dataset is not known.

    Raises
    ------
    ConfigError
        If the experiment cannot be run.
    """
    config = compose_settings([f"experiment={name}"], config_dir)
    study = check_settings(config).study
    shapes = _shapes(study, config["dataset"], stored)
    if len(shapes) < len(study.datasets):
        return Hours(nan, nan)
    typical = typical_costs(study.arms, study.protocol)
    measured = {} if stored is None else observed_pairs(stored.results.trials, shapes, typical)
    sampled = _sampled(study, config_dir)
    n_inner = _n_inner((sampled or study).protocol)
    repeats, whole, left = requested_repeats(study.search), 0.0, 0.0
    for dataset, arm, trainings in declared_trainings(study, n_inner, sampled):
        pair = dataset.name, arm.name
        of_pair = pair, typical.get(arm.name), shapes[dataset.name], trainings
        nothing = PairState(round(trainings.total), complete=False)
        state, known = nothing, None
        if stored is not None and not terms.concerning([arm.solver], [dataset_key(dataset.name)]):
            state, known = stored.results.states.get(pair, nothing), measured.get(pair)
        whole += with_repeats(planned_line(*of_pair, nothing, known), repeats).seconds_left / 3600
        left += with_repeats(planned_line(*of_pair, state, known), repeats).seconds_left / 3600
    return Hours(whole, left)


def _shapes(
    study: Study, nodes: Mapping[str, Mapping[str, Any]], stored: Findings | None
) -> dict[str, Shape]:
    """Return the sizes of the datasets of an experiment.

    Parameters
    ----------
    study : Study
        The experiment.
    nodes : mapping of str to mapping
        Configurations of its datasets, by name without sweep values.
    stored : Findings or None
        Findings of its stored study, which has recorded sizes.

    Returns
    -------
    dict of str to Shape
        Sizes by name. Datasets whose number of rows is not known are missing.
    """
    found: dict[str, Shape] = {}
    for dataset in study.datasets:
        about = read_about(nodes[dataset_key(dataset.name)])
        recorded = {} if stored is None else stored.design.datasets.get(dataset.name, {})
        n = recorded.get("n", dataset.params.get("n", about.n))
        if not isinstance(n, int):
            continue
        d = recorded.get("d", about.d) or _FEATURES
        classes = recorded.get("classes", about.classes) or _CLASSES
        train, scheme = dataset.params.get("n_train"), study.protocol.outer
        if isinstance(train, int) and isinstance(scheme, Mapping):
            outer = train / n
        else:
            outer = _train_share(scheme)
        found[dataset.name] = Shape(n, d, classes, outer, outer * _train_share(study.protocol.inner))
    return found


def _sampled(study: Study, config_dir: Path | None) -> Study | None:
    """Return the experiment whose trainings an experiment samples.

    Parameters
    ----------
    study : Study
        The experiment.
    config_dir : Path or None
        The user's folder of configurations.

    Returns
    -------
    Study or None
        None if it samples none.

    Raises
    ------
    ConfigError
        If the sampled experiment cannot be run.
    """
    if study.search.target != SAMPLE:
        return None
    name = study.search.options["study"]
    return check_settings(compose_settings([f"experiment={name}"], config_dir)).study


def _n_inner(protocol: Protocol) -> tuple[int, ...]:
    """Return the expected number of inner splits of each outer split.

    Parameters
    ----------
    protocol : Protocol
        The protocol.

    Returns
    -------
    tuple of int
        Numbers of inner splits.
    """
    inner = 0 if protocol.inner is None else _n_splits(protocol.inner)
    return (inner,) * (_n_splits(protocol.outer) * len(protocol.seeds))


def _train_share(scheme: Any) -> float:
    """Return the share of the rows on which a splitter trains.

    Parameters
    ----------
    scheme : object
        Number of folds, a splitter with its arguments, or None for no splits.

    Returns
    -------
    float
        Share, from 0 to 1.
    """
    if scheme is None:
        return 1.0
    sizes = scheme if isinstance(scheme, Mapping) else {}
    if isinstance(sizes.get("train_size"), float):
        return float(sizes["train_size"])
    test = sizes.get("test_size")
    return 1 - (test if isinstance(test, float) else 1 / max(2, _n_splits(scheme)))


def _n_splits(scheme: Any) -> int:
    """Return the number of splits of a splitter.

    Parameters
    ----------
    scheme : object
        Number of folds, or a splitter with its arguments.

    Returns
    -------
    int
        Number of splits; 1 for a splitter that does not say it, such as a given split.
    """
    if isinstance(scheme, int):
        return scheme
    given = scheme.get("n_splits", 1) if isinstance(scheme, Mapping) else 1
    return given * n_repeats({"outer": scheme}) if isinstance(given, int) else 1
