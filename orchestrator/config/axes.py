"""Axes of a sweep over parameters of solvers and datasets: labels of values, and products of axes."""

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from orchestrator.study.study import DatasetSpec
from orchestrator.study.targets import TARGET
from orchestrator.study.values import ParamValue, canonical_json, cell

MAX_SETTINGS = 5000
"""Largest number of combinations of sweep values, for one solver or dataset."""

Axes = Mapping[str, Sequence[ParamValue]]
"""Sweep values by parameter."""


def too_many(what: str, kind: str, axes: Axes) -> str:
    """Return a message if axes have too many combinations of values; empty if they have not.

    Parameters
    ----------
    what : str
        Kind and name of the solver or dataset, for the message.
    kind : {"arms", "datasets"}
        Kind of objects that the sweep would make, for the message.
    axes : mapping of str to sequence
        Values by parameter.
    """
    number = math.prod(map(len, axes.values()))
    if number <= MAX_SETTINGS:
        return ""
    return f"{what}: sweep asks for {number:.3g} {kind}; expected at most {MAX_SETTINGS:,}: use fewer values"


def settings(axes: Axes) -> Iterator[tuple[dict[str, ParamValue], str]]:
    """Yield every combination of values, with its label, such as `eta=1.3,draws=100`.

    Parameters
    ----------
    axes : mapping of str to sequence
        Values by parameter.

    Yields
    ------
    tuple of dict and str
        Values by parameter, and the label.
    """
    labelled = [zip(values, _labels(values), strict=True) for values in axes.values()]
    for chosen in itertools.product(*labelled):
        named = dict(zip(axes, chosen, strict=True))
        values = {param: value for param, (value, _) in named.items()}
        yield values, ",".join(f"{param}={text}" for param, (_, text) in named.items())


def swept_step(axis: str, params: Collection[str]) -> str | None:
    """Return the parameter of a step of a pipeline that an axis of a sweep names, such as `n_components`.

    Parameters
    ----------
    axis : str
        Name of the axis.
    params : collection of str
        Parameters of a solver.

    Returns
    -------
    str or None
        The only parameter `step__axis`; None if there is none or several, or the solver has `axis` itself.
    """
    found = [param for param in params if param.rpartition("__")[2] == axis]
    return found[0] if len(found) == 1 and found[0] != axis else None


def swept_datasets(dataset: DatasetSpec, sweep: Axes, problems: list[str]) -> list[DatasetSpec]:
    """Return one dataset for each combination of the sweep values that apply to a dataset.

    They are named `checkers[n=1000]` and so on. They belong to one family, because they share a source.

    Parameters
    ----------
    dataset : DatasetSpec
        Dataset as configured, before its sweep values replace parameters.
    sweep : mapping of str to sequence
        Values by parameter. Only parameters that the dataset's configuration sets apply.
    problems : list of str
        A message is appended if there are too many combinations.
    """
    axes = {param: values for param, values in sweep.items() if param in dataset.params}
    if not axes:
        return [dataset]
    if problem := too_many(f"dataset {dataset.name}", "datasets", axes):
        problems.append(problem)
        return [dataset]
    family = dataset.family or dataset.name
    return [
        replace(dataset, name=f"{dataset.name}[{label}]", params={**dataset.params, **values}, family=family)
        for values, label in settings(axes)
    ]


def _labels(values: Sequence[ParamValue]) -> list[str]:
    """Return a label for each value. Different values have different labels.

    Parameters
    ----------
    values : sequence
        Values of one axis.
    """
    labels = list(map(_label, values))
    return [
        cell(value) if labels.count(label) > 1 else label  # for example classes of one name in two modules
        for value, label in zip(values, labels, strict=True)
    ]


def _label(value: ParamValue, marks: str = ",=[]") -> str:
    if isinstance(value, Mapping) and isinstance(target := value.get(TARGET), str):
        arguments = [f"{key}={_label(each, ',=[]()')}" for key, each in value.items() if key != TARGET]
        name = target.rpartition(".")[2]
        return f"{name}({','.join(arguments)})" if arguments else name
    if isinstance(value, str) and any(mark in value for mark in marks):
        return canonical_json(value)
    return cell(value)
