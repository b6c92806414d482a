"""Slopes of one quantity on another, over datasets and over swept settings."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from math import nan, sqrt
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import linregress

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.measured_on import are_comparable
from orchestrator.claims.comparisons import on_each_dataset, with_estimates
from orchestrator.claims.figures import LEVEL, QUANTITIES, Figure, Side, Unanswered, side, t_quantile
from orchestrator.study.values import cell, is_number


class Swept(NamedTuple):
    """A quantity of one solver over the values of a swept parameter.

    Attributes
    ----------
    solver : str
        Name of the solver.
    studies : sequence of Findings
        Analysed studies that the claim names.
    axis : str
        Name of the swept parameter.
    y : str
        One of `QUANTITIES`.
    datasets : callable
        Function from the name of a dataset to whether the test includes it.
    arms : callable
        Function from the recorded attributes of an arm to whether the test includes it.
    looks : int, default 1
        Number of comparisons in the claim. Each of them can refute it.
    """

    solver: str
    studies: Sequence[Findings]
    axis: str
    y: str
    datasets: Callable[[str], bool]
    arms: Callable[[Mapping[str, Any]], bool]
    looks: int = 1


def slope_over_datasets(
    arm: Side, x: str, y: str, datasets: Callable[[str], bool], minimum: float, maximum: float, looks: int = 1
) -> list[Figure]:
    """Return the slope of log y on log x over the datasets of an arm.

    Parameters
    ----------
    arm : Side
        Arm and the studies that have it.
    x, y : str
        Quantities. `x` may also be a number that is recorded about datasets, such as `n`.
    datasets : callable
        Function from the name of a dataset to whether the test includes it.
    minimum, maximum : float
        Limits of x.
    looks : int, default 1
        Number of comparisons in the claim. Each of them can refute it.

    Returns
    -------
    list of Figure
        A single figure.

    Raises
    ------
    Unanswered
        If `x` is neither measured nor recorded, or the datasets have times of different kinds of processors.
    """
    measured = arm.measured(y)
    if x in QUANTITIES:
        across = arm.measured(x)
    else:
        recorded = {name: summary.get(x) for name, summary in arm.datasets.items()}
        across = pd.Series({name: value for name, value in recorded.items() if is_number(value)}, dtype=float)
        if across.empty:
            raise Unanswered(f"{x} is neither measured nor recorded as a number of the datasets")
    points = pd.DataFrame({"x": across, "y": measured}).dropna()
    points = points.loc[[name for name in points.index if datasets(str(name))]]
    points = points[points["x"].between(minimum, maximum)]
    if "seconds" in y and not _are_of_one_kind(arm.processors(str(name), y) for name in points.index):
        raise Unanswered(f"the datasets of {arm.arm} have times of different kinds of processors")
    what, estimated = f"{arm.arm}, log {y} on log {x}", arm.estimated(y, points.index)
    return [_slope(what, points, "datasets", looks, estimated)]


def slopes_over_settings(swept: Swept) -> list[Figure]:
    """Return the slope of log y on the logarithm of a swept value, for each dataset and group of arms.

    Parameters
    ----------
    swept : Swept
        The sweep and the quantity.

    Returns
    -------
    list of Figure
        One figure for each dataset and group.

    Raises
    ------
    Unanswered
        If the parameter is not swept, no dataset has values, or the settings have times of different kinds of
        processors.
    """
    solver, axis, y = swept.solver, swept.axis, swept.y
    means, sides = {}, {}
    for name, arms in _groups(swept).items():
        of_group = {value: side(arm, swept.studies) for value, arm in arms.items()}
        table = pd.DataFrame({value: each.measured(y) for value, each in of_group.items()})
        for dataset in filter(lambda each: swept.datasets(str(each)), table.index):
            of_dataset = table.loc[dataset].dropna()
            means[name, dataset] = of_dataset
            sides[name, dataset] = [of_group[value] for value in of_dataset.index]
            _require_one_kind_of_processor(solver, [dataset], sides[name, dataset], y)
    found = []
    for (name, dataset), row in means.items():
        points = row.rename("y").rename_axis("x").reset_index()
        estimated = "; ".join(filter(None, (each.estimated(y, [dataset]) for each in sides[name, dataset])))
        what = f"{name} on {dataset}, log {y} on log {axis}"
        found.append(_slope(what, points, "settings", swept.looks * len(means), estimated))
    if not found:
        raise Unanswered(f"no dataset has {y} of {solver} for several values of {axis}")
    return found


def bends_of_lines(swept: Swept) -> list[Figure]:
    """Return y at each inner setting ÷ y on the line through the smallest and the largest setting.

    A ratio of 1 at every inner setting is a straight line. A curve that levels off gives ratios above 1.

    Parameters
    ----------
    swept : Swept
        The sweep and the quantity.

    Returns
    -------
    list of Figure
        One figure for each inner setting and dataset, with an interval over its outer folds.

    Raises
    ------
    Unanswered
        If fewer than three settings are swept, no dataset has values, or the settings have times of different
        kinds of processors.
    """
    solver, axis, y, looks = swept.solver, swept.axis, swept.y, swept.looks
    groups, found = _arms_within(swept, "a line"), []
    n_inner = sum(len(arms) - 2 for arms in groups.values())
    for arms in groups.values():
        values = list(arms)
        sides = {value: side(arm, swept.studies) for value, arm in arms.items()}
        first, last = (sides[value].folds(y) for value in (values[0], values[-1]))
        for value in values[1:-1]:
            share = (value - values[0]) / (values[-1] - values[0])
            line = (1 - share) * first + share * last
            both = sides[value].folds(y).add_suffix("_arm").join(line.add_suffix("_reference"), how="inner")
            both = _of_datasets(both.dropna(), swept.datasets)
            of_line = [sides[each] for each in (values[0], value, values[-1])]
            _require_one_kind_of_processor(solver, both.index.unique("dataset"), of_line, y)
            what = f"{arms[value]} / line from {axis}={values[0]:g} to {values[-1]:g}, {y}"
            figures = on_each_dataset(what, both, sides[value], True, looks * n_inner)
            found += with_estimates(figures, both, [(sides[value], y)])
    if not found:
        raise Unanswered(f"no dataset has {y} of {solver} for several values of {axis}")
    return found


def curvatures(swept: Swept) -> list[Figure]:
    """Return y in the middle of the swept range ÷ the mean of y at its ends, both on a fitted parabola.

    A parabola is fitted to y over all settings on every outer fold. The ratio is 1 for a straight line, above
    1 for a curve that levels off, and below 1 for one that becomes steeper.

    Parameters
    ----------
    swept : Swept
        The sweep and the quantity.

    Returns
    -------
    list of Figure
        One figure for each dataset and group of arms, with an interval over its outer folds.

    Raises
    ------
    Unanswered
        If fewer than three settings are swept, no dataset has values, or the settings have times of different
        kinds of processors.
    """
    groups, found = _arms_within(swept, "a curvature"), []
    for name, arms in groups.items():
        found += _curvature(name, arms, swept._replace(looks=swept.looks * len(groups)))
    if not found:
        raise Unanswered(f"no dataset has {swept.y} of {swept.solver} for several values of {swept.axis}")
    return found


def _curvature(name: str, arms: Mapping[float, str], swept: Swept) -> list[Figure]:
    """Return the curvature of y over the settings of a group of arms.

    Parameters
    ----------
    name : str
        Name of the group.
    arms : mapping of float to str
        Its arms by ascending value.
    swept : Swept
        The sweep and the quantity.

    Returns
    -------
    list of Figure
        One figure for each dataset that has values.
    """
    axis, y = swept.axis, swept.y
    values = np.array(list(arms))
    sides = [side(arm, swept.studies) for arm in arms.values()]
    folds = [each.folds(y) for each in sides]
    measured = [frame["low"].where(frame["low"] == frame["high"]) for frame in folds]
    wide = _of_datasets(pd.concat(measured, axis=1, join="inner").dropna(), swept.datasets)
    if wide.empty:
        return []
    _require_one_kind_of_processor(name, wide.index.unique("dataset"), sides, y)
    scaled = 2 * (values - values[0]) / (values[-1] - values[0]) - 1  # −1 and 1 at the ends, 0 in the middle
    fitted = np.linalg.pinv(np.vander(scaled, 3, increasing=True)) @ wide.to_numpy(dtype=float).T
    middle, ends = fitted[0], fitted[0] + fitted[2]
    both = pd.DataFrame(
        {"low_arm": middle, "high_arm": middle, "low_reference": ends, "high_reference": ends},
        index=wide.index,
    )
    what = f"{name}, {y} in the middle / mean of the ends, {axis} from {values[0]:g} to {values[-1]:g}"
    figures = on_each_dataset(what, both, sides[0], True, swept.looks)
    return with_estimates(figures, both, [(each, y) for each in sides])


def _arms_within(swept: Swept, what: str) -> dict[str, dict[float, str]]:
    """Return the arms of groups with at least three values, by group and ascending value.

    Parameters
    ----------
    swept : Swept
        The sweep and the quantity.
    what : str
        Name of the figure, for the message.

    Returns
    -------
    dict of str to dict of float to str
        Names of the arms by value, by name of the group.

    Raises
    ------
    Unanswered
        If the parameter is not swept, or no group has three values.
    """
    found = {name: dict(sorted(arms.items())) for name, arms in _groups(swept).items()}
    if (most := max(map(len, found.values()), default=0)) < 3:
        raise Unanswered(f"{what} requires three settings of {swept.axis}, found {most}")
    return {name: arms for name, arms in found.items() if len(arms) >= 3}


def _require_one_kind_of_processor(
    name: str, datasets: Iterable[Hashable], sides: Sequence[Side], y: str
) -> None:
    """Check that the times of all settings on each dataset come from one kind of processor.

    Parameters
    ----------
    name : str
        Name of the solver or group of arms, for the message.
    datasets : iterable of str
        Names of the datasets.
    sides : sequence of Side
        Arms of the settings.
    y : str
        One of `QUANTITIES`. Those that are not times need no check.

    Raises
    ------
    Unanswered
        If the kinds differ.
    """
    for dataset in map(str, datasets if "seconds" in y else ()):
        if not _are_of_one_kind(each.processors(dataset, y) for each in sides):
            what = f"the settings of {name} on {dataset}"
            raise Unanswered(f"{what} have times of different kinds of processors")


def _are_of_one_kind(shares: Iterable[Mapping[str, float]]) -> bool:
    """Return whether all times come from one kind of processor.

    Parameters
    ----------
    shares : iterable of mapping of str to float
        Shares of the trainings of an arm on a dataset, by kind of processor; empty if it has none.
    """
    kinds = [each for each in shares if each]
    return all(are_comparable(kinds[0], each) for each in kinds[1:])


def _of_datasets(folds: pd.DataFrame, datasets: Callable[[str], bool]) -> pd.DataFrame:
    """Return the rows of the datasets that a test includes.

    Parameters
    ----------
    folds : DataFrame
        Values, indexed by dataset and outer fold.
    datasets : callable
        Function from the name of a dataset to whether the test includes it.
    """
    names = folds.index.get_level_values("dataset")
    return folds[np.array([datasets(str(name)) for name in names], dtype=bool)]


def _groups(swept: Swept) -> dict[str, dict[float, str]]:
    """Return the arms of a sweep that the test includes, in groups that differ in the value of its parameter.

    Parameters
    ----------
    swept : Swept
        The sweep.

    Returns
    -------
    dict of str to dict of float to str
        Names of arms by value, by name of the group: the solver with the values of other swept parameters.

    Raises
    ------
    Unanswered
        If the parameter is not swept.
    """
    groups: dict[str, dict[float, str]] = {}
    is_swept = False
    for study in swept.studies:
        for arm, declared in study.design.arms.items():
            others = dict(declared.get("sweep") or {})
            value = others.pop(swept.axis, None)
            if declared.get("solver") != swept.solver or not is_number(value):
                continue
            is_swept = True
            if swept.arms(declared):
                axes = ",".join(f"{name}={cell(others[name])}" for name in sorted(others))
                groups.setdefault(f"{swept.solver}[{axes}]" if axes else swept.solver, {})[float(value)] = arm
    if not is_swept:
        names = " and ".join(study.results.name for study in swept.studies)
        raise Unanswered(f"study {names} has no sweep of {swept.axis} for {swept.solver}")
    return groups


def _slope(what: str, points: pd.DataFrame, unit: str, looks: int, estimated: str) -> Figure:
    """Return the least-squares slope of log y on log x.

    Parameters
    ----------
    what : str
        Description of the slope.
    points : DataFrame
        Columns x and y. Points that are not positive are omitted.
    unit : str
        Unit of the points, in the plural.
    looks : int
        Number of comparisons of the claim.
    estimated : str
        Numbers of trainings from which y is estimated; empty if it is complete.

    Returns
    -------
    Figure
        The figure; without an interval for fewer than three points.
    """
    points = points[(points["x"] > 0) & (points["y"] > 0)]
    n = len(points)
    if n < 3 or points["x"].nunique() < 2:
        return Figure(what, nan, nan, nan, n, unit, note="a slope with an interval requires three points")
    line = linregress(np.log(points["x"]), np.log(points["y"]))
    ends = [
        (
            line.slope - t_quantile(n - 2, level) * line.stderr,
            line.slope + t_quantile(n - 2, level) * line.stderr,
        )
        for level in (LEVEL, LEVEL / looks)
    ]
    note = f"R² = {line.rvalue**2:.2f}, x from {points['x'].min():g} to {points['x'].max():g}"
    note, spread = f"{note}; {estimated}" if estimated else note, float(line.stderr) * sqrt(n)
    return Figure(
        what, float(line.slope), *ends[0], n, unit, float(line.pvalue), note, ends[1], spread=spread
    )
