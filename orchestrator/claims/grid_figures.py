"""Figures over all points of a grid, in studies by `search=every`. They have no interval.

The points of a grid are no sample of anything, and a published split is one split. So such a figure is no
test. It lies in the region of a claim, or it does not.
"""

from collections.abc import Callable, Iterator, Mapping
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis.findings import Findings, grid_points, representative_sets
from orchestrator.analysis.measured_on import are_comparable
from orchestrator.analysis.reference_measures import reference_measures
from orchestrator.claims.figures import NO_TEST, Figure, Side, Unanswered
from orchestrator.study.records import Status
from orchestrator.study.targets import did_you_mean
from orchestrator.study.values import is_number

OF_REFERENCE = ("rmse", "ets", "ots", "ecs", "ocs")
"""Quantities that compare an arm with a reference arm."""

TIMES_OF_REFERENCE = ("ets", "ots")
"""Those that are ratios of times."""

OF_SETS = ("representatives_share", "reduction_seconds")
"""Quantities of representative sets: M/N, and the seconds to derive a set. Both are means over settings."""

OF_SCORES = ("maximum", "mean", "sd", "sd_of_means", "n_sv", "timeout_share")
"""Quantities of an arm alone: of its scores and mean number of vectors, and the share of stopped points."""

GRID_QUANTITIES = (*OF_REFERENCE, *OF_SETS, *OF_SCORES)
"""All quantities of the test `figure`."""


def grid_figures(arm: Side, options: Mapping[str, Any], chosen: Callable[[str], bool]) -> Iterator[Figure]:
    """Yield the figure of an arm on each dataset, or one for each arm with which it is compared.

    Parameters
    ----------
    arm : Side
        Arm and the studies that have it.
    options : mapping of str to object
        Options of the test: `quantity`; `reference`, the arm against which it is measured; `at`, values of
        parameters of a representative set; `along` and `direction`, for the share of its steps that do not go
        the other way; `over` and `minus`, arms by whose figure it is divided, or that are subtracted.
    chosen : callable
        Function from the name of a dataset to whether the test includes it.

    Yields
    ------
    Figure
        One number without an interval. It is NaN where a dataset × arm is not complete, and for times of
        different kinds of processors.

    Raises
    ------
    Unanswered
        If no study has a chosen dataset, or an arm or parameter that the options name.
    """
    found = False
    for study in arm.studies:
        for dataset in filter(chosen, study.design.datasets):
            found = True
            yield from _on_dataset(study, dataset, arm.arm, options)
    if not found:
        raise Unanswered(f"no study with {arm.arm} has such a dataset")


def _on_dataset(study: Findings, dataset: str, arm: str, options: Mapping[str, Any]) -> Iterator[Figure]:
    """Yield the figures of an arm on one dataset.

    Parameters
    ----------
    study : Findings
        Analysed study.
    dataset, arm : str
        Names of the dataset and of the arm.
    options : mapping of str to object
        Options of the test; see `grid_figures`.
    """
    quantity = str(options["quantity"])
    compared = [(sign, each) for sign in ("over", "minus") for each in _names(options.get(sign))]
    for sign, other in compared or [("", "")]:
        value, n, unit = _value(study, dataset, arm, options)
        if other:
            second, n_other, _ = _value(study, dataset, other, options)
            n = min(n, n_other)
            value = _divided(value, second) if sign == "over" else value - second
        against = {"over": f" / {other}", "minus": f" − {other}", "": ""}[sign]
        rising = f", {options['direction']} with {options['along']}" if options.get("along") else ""
        at = "".join(f", {name}={wanted}" for name, wanted in (options.get("at") or {}).items())
        lacks = "not complete, without a value, or with times of different kinds of processors"
        note = NO_TEST if n else f"{NO_TEST}; {lacks}"
        what = f"{arm}{against}, {quantity}{rising}{at}, {dataset}"
        yield Figure(what, value, value, value, n, unit, note=note)


def _names(value: Any) -> list[str]:
    """Return the arms of an option.

    Parameters
    ----------
    value : object
        One name, a list of names, or None.
    """
    return list(value) if isinstance(value, (list, tuple)) else [] if value is None else [str(value)]


def _divided(value: float, by: float) -> float:
    """Return a quotient; NaN if the divisor is 0.

    Parameters
    ----------
    value, by : float
        Numerator and denominator.
    """
    return value / by if by else nan


def _value(study: Findings, dataset: str, arm: str, options: Mapping[str, Any]) -> tuple[float, int, str]:
    """Return the value of a quantity, how many numbers it summarises, and what these are.

    Parameters
    ----------
    study : Findings
        Analysed study.
    dataset, arm : str
        Names of the dataset and of the arm.
    options : mapping of str to object
        Options of the test; see `grid_figures`.

    Returns
    -------
    value : float
        NaN, with the number 0, if a dataset × arm is not complete or has no value, or if times of different
        kinds of processors would be compared.
    n : int
        Number of points × splits, or of sets or steps.
    unit : str
        What `n` counts, in the plural.
    """
    quantity, reference = str(options["quantity"]), str(options.get("reference") or arm)
    unit = "sets" if quantity in OF_SETS else "points × splits"
    for name in (arm, reference):
        if name not in study.design.arms:
            known = did_you_mean(name, list(study.design.arms))
            raise Unanswered(f"study {study.results.name} has no arm {name}{known}")
        state = study.results.states.get((dataset, name))
        if state is None or not state.complete:
            return nan, 0, unit
    if quantity in TIMES_OF_REFERENCE:
        kinds = [Side(name, [study]).processors(dataset, quantity) for name in (arm, reference)]
        if not are_comparable(*kinds):
            return nan, 0, unit
    if quantity in OF_SETS:
        value, n = _of_sets(study, dataset, arm, options)
        return value, n, "steps" if options.get("along") else unit
    trials = study.results.trials
    rows = trials[(trials["dataset"] == dataset) & (trials["solver"] == arm)]
    if quantity == "timeout_share":
        return float((rows["status"] == Status.TIMEOUT).mean()), len(rows), unit
    points = grid_points(study)
    if quantity == "n_sv":
        sizes = points.loc[(points["dataset"] == dataset) & (points["solver"] == arm), "n_sv"]
        return (
            (nan, 0, unit) if sizes.isna().any() or sizes.empty else (float(sizes.mean()), len(sizes), unit)
        )
    frame = reference_measures(points, study.design, [reference])
    row = frame[(frame["dataset"] == dataset) & (frame["solver"] == arm)] if len(frame) else frame
    value = float(row[quantity].iloc[0]) if len(row) else nan
    return (value, int(row["n_points"].iloc[0]), unit) if np.isfinite(value) else (nan, 0, unit)


def _of_sets(study: Findings, dataset: str, arm: str, options: Mapping[str, Any]) -> tuple[float, int]:
    """Return the mean of a quantity of representative sets, or the share of its steps along a parameter.

    The other parameters are equal at both ends of a step.

    Parameters
    ----------
    study : Findings
        Analysed study.
    dataset, arm : str
        Names of the dataset and of the arm.
    options : mapping of str to object
        Options of the test; see `grid_figures`.

    Returns
    -------
    value : float
        NaN without such sets.
    n : int
        Number of sets or of steps.
    """
    sets = representative_sets(study)
    if sets.empty:
        return nan, 0
    column = {"representatives_share": "share"}.get(str(options["quantity"]), str(options["quantity"]))
    sets = sets[(sets["dataset"] == dataset) & (sets["solver"] == arm)]
    values = pd.Series(sets[column].to_numpy(), [_parameters(text) for text in sets["parameters"]])
    for name, wanted in (options.get("at") or {}).items():
        values = values[[each.get(name) == float(wanted) for each in values.index]]
    values = values.dropna()
    if not options.get("along"):
        return (float(values.mean()), len(values)) if len(values) else (nan, 0)
    along, sign = str(options["along"]), 1.0 if options["direction"] == "rises" else -1.0
    if any(not is_number(each.get(along)) for each in values.index):
        raise Unanswered(f"the sets of {arm} have no numeric parameter {along}")
    frame = pd.DataFrame({"at": [each[along] for each in values.index], "value": values.to_numpy()})
    frame["others"] = [tuple(item for item in each.items() if item[0] != along) for each in values.index]
    differences = sign * frame.sort_values("at", kind="stable").groupby("others")["value"].diff().dropna()
    return (float((differences >= 0).mean()), len(differences)) if len(differences) else (nan, 0)


def _parameters(text: str) -> dict[str, float | str]:
    """Return the parameters of a setting, as numbers where they are numbers.

    Parameters
    ----------
    text : str
        Text such as `degree=2, gamma=1`.
    """
    found: dict[str, float | str] = {}
    for part in filter(None, text.split(", ")):
        name, _, value = part.partition("=")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = value
    return found
