"""Axes of a sweep: each value has a label, and several axes multiply, for solvers and for datasets."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from orchestrator.study.study import DatasetSpec
from orchestrator.study.targets import TARGET
from orchestrator.study.values import ParamValue, canonical_json, cell

MOST_SETTINGS = 5000
"""Of a solver or a dataset: values of a sweep multiply."""

Axes = Mapping[str, Sequence[ParamValue]]


def too_many(what: str, kind: str, axes: Axes) -> str:
    """Return what is wrong with axes that have too many settings; empty if nothing is."""
    number = math.prod(map(len, axes.values()))
    if number <= MOST_SETTINGS:
        return ""
    return f"{what}: sweep asks for {number:.3g} {kind}; expected at most {MOST_SETTINGS:,}: use fewer values"


def settings(axes: Axes) -> Iterator[tuple[dict[str, ParamValue], str]]:
    """Yield the values of each setting of the axes, and its label, such as `eta=1.3,draws=100`."""
    labelled = [zip(values, _labels(values), strict=True) for values in axes.values()]
    for chosen in itertools.product(*labelled):
        named = dict(zip(axes, chosen, strict=True))
        values = {param: value for param, (value, _) in named.items()}
        yield values, ",".join(f"{param}={text}" for param, (_, text) in named.items())


def swept_datasets(dataset: DatasetSpec, sweep: Axes, problems: list[str]) -> list[DatasetSpec]:
    """Multiply a dataset by the axes that its configuration sets; what is wrong is told.

    The datasets are called `checkers[n=1000]` and so on, and are one family: they share their source.
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
    """Write values so that different ones have different labels, and a label reads in one way only."""
    labels = list(map(_label, values))
    return [
        cell(value) if labels.count(label) > 1 else label  # classes of one name, of different modules
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
