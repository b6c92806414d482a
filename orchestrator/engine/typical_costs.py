"""Typical costs of trainings of known solvers, which published studies have measured.

The logarithm of the seconds of a training is the logarithm of `prior_seconds`, which depends on sizes alone,
plus a linear combination of `terms`: of sizes, and quadratic in the logarithms of C and gamma. The weights
are the sum of those of all solvers, of the class, of the solver, and of the dataset if a published study has
it. `python -m benchmarks.typical_costs` fits them, by profile and family of solvers, and writes
typical_costs.json. Another core may be half or twice as fast as the ones on which the studies were measured.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from orchestrator.study.study import Arm, Candidate, Protocol
from orchestrator.study.values import is_number

FILE = Path(__file__).with_name("typical_costs.json")
"""Path of the file with the weights."""

TERMS = ("one", "n", "subproblems", "d", "C", "gamma", "C²", "gamma²", "C·gamma")
"""Names of the terms."""

DATASET_TERMS = ("one", "C", "gamma", "C²", "gamma²", "C·gamma")
"""Names of the terms that have weights of a dataset. Its sizes are the same for all of its trainings."""

_CENTRE = {"C": 4.0, "gamma": 0.25}
"""Values of C and gamma at which their terms are 0. They also replace values that are not known."""

_LIMITS = {"C": (2.0**-5, 2.0**11), "gamma": (2.0**-11, 2.0**5)}
"""Smallest and largest value of C and gamma that is told apart, which is twice the range of the studies."""

_RANGE_VALUES = 5
"""Number of values that stand for a range of C or gamma."""


class Sizes(NamedTuple):
    """Sizes of a training set.

    Attributes
    ----------
    n : float
        Number of training samples.
    d : int
        Number of features.
    classes : int
        Number of classes.
    """

    n: float
    d: int
    classes: int

    @property
    def subproblems(self) -> float:
        """Number of pairs of classes."""
        return max(1.0, self.classes * (self.classes - 1) / 2)

    @property
    def of_subproblem(self) -> float:
        """Mean number of samples of a pair of classes."""
        return 2 * self.n / max(2, self.classes)


def prior_seconds(sizes: Sizes) -> float:
    """Return the seconds of a training before anything is learnt from studies, from sizes only.

    Each pair of classes costs a constant time, and time that grows with its number of samples and of
    features.

    Parameters
    ----------
    sizes : Sizes
        Sizes of the training set.

    Returns
    -------
    float
        Seconds.
    """
    growing = 1e-6 * sizes.of_subproblem**1.3 * float(np.sqrt(1 + sizes.d / 64))
    return sizes.subproblems * (2e-4 + growing)


def terms(sizes: Sizes, C: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """Return the terms of trainings that differ in C and gamma.

    Parameters
    ----------
    sizes : Sizes
        Sizes of the training set.
    C, gamma : float array, shape (n_trainings,)
        Hyper-parameters; NaN where a solver has none or its value is not known.

    Returns
    -------
    float array, shape (n_trainings, n_terms)
        Values of `TERMS`.
    """
    of = [
        np.log2(np.clip(np.where(np.isnan(values), _CENTRE[name], values), *_LIMITS[name]) / _CENTRE[name])
        / 4
        for name, values in (("C", C), ("gamma", gamma))
    ]
    samples, features = max(1.0, sizes.of_subproblem), max(1, sizes.d)
    fixed = (1.0, np.log(samples / 300), np.log(sizes.subproblems), np.log(features / 10))
    columns = [np.full(len(C), value) for value in fixed]
    return np.column_stack([*columns, *of, of[0] ** 2, of[1] ** 2, of[0] * of[1]])


OF_DATASET = [TERMS.index(name) for name in DATASET_TERMS]
"""Indices of the terms that have weights of a dataset."""


def dataset_key(name: str) -> str:
    """Return the name under which the weights of a dataset are stored, without its sweep values.

    Parameters
    ----------
    name : str
        Name of a dataset, such as `checkers[n=1000]`.

    Returns
    -------
    str
        For example `checkers`.
    """
    return name.partition("[")[0]


def c_and_gamma(candidates: Sequence[Candidate], fixed: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of C and gamma of candidates.

    Parameters
    ----------
    candidates : sequence of Candidate
        Points of the hyper-parameter space.
    fixed : mapping of str to object
        Parameters of all trainings of the arm, for those that the candidates lack.

    Returns
    -------
    C, gamma : float array, shape (n_candidates,)
        Values; NaN where there is no positive number.
    """
    C, gamma = (
        np.array([_positive(candidate.value(name, fixed.get(name))) for candidate in candidates])
        for name in ("C", "gamma")
    )
    return C, gamma


def _positive(value: Any) -> float:
    """Return a positive number as it is, and NaN for any other value.

    Parameters
    ----------
    value : object
        Value of a hyper-parameter.

    Returns
    -------
    float
        The number, or NaN.
    """
    return float(value) if is_number(value) and value > 0 else float("nan")


@dataclass(frozen=True)
class TypicalCost:
    """Typical seconds of the trainings of an arm.

    Attributes
    ----------
    weights : float array, shape (n_terms,)
        Weights of the terms for the solver of the arm.
    datasets : mapping of str to mapping
        Additional weights by key of a dataset: `weights` of `DATASET_TERMS`, and its sizes `d` and `classes`.
    fixed : mapping of str to object
        Parameters of all trainings of the arm, for those that a candidate lacks.
    C, gamma : float array, shape (n_candidates,)
        Hyper-parameters over the whole space of the arm.
    """

    weights: np.ndarray
    datasets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    C: np.ndarray = field(default_factory=lambda: np.full(1, np.nan))
    gamma: np.ndarray = field(default_factory=lambda: np.full(1, np.nan))

    def fixed_value(self, name: str) -> float:
        """Return the value of a hyper-parameter that all trainings of the arm have.

        Parameters
        ----------
        name : str
            `C` or `gamma`.

        Returns
        -------
        float
            The value; NaN if it is not a positive number.
        """
        return _positive(self.fixed.get(name))

    def seconds(self, dataset: str, sizes: Sizes, C: np.ndarray, gamma: np.ndarray) -> np.ndarray:
        """Return the expected seconds of trainings on one training set.

        The weights of a dataset count only if the dataset has the same number of features and classes.

        Parameters
        ----------
        dataset : str
            Name of the dataset.
        sizes : Sizes
            Sizes of the training set.
        C, gamma : float array, shape (n_trainings,)
            Hyper-parameters; NaN where they are not known.

        Returns
        -------
        float array, shape (n_trainings,)
            Seconds.
        """
        weights = self.weights
        known = self.datasets.get(dataset_key(dataset))
        if known is not None and (known["d"], known["classes"]) == (sizes.d, sizes.classes):
            weights = weights.copy()
            weights[OF_DATASET] += known["weights"]
        seconds: np.ndarray = prior_seconds(sizes) * np.exp(terms(sizes, C, gamma) @ weights)
        return seconds

    def mean_seconds(self, dataset: str, sizes: Sizes) -> float:
        """Return the mean seconds of a training over the space of the arm.

        Parameters
        ----------
        dataset : str
            Name of the dataset.
        sizes : Sizes
            Sizes of the training set.

        Returns
        -------
        float
            Seconds.
        """
        return float(self.seconds(dataset, sizes, self.C, self.gamma).mean())


def typical_costs(arms: Iterable[Arm], protocol: Protocol) -> dict[str, TypicalCost]:
    """Return the typical cost of each arm whose solver or class is known.

    Parameters
    ----------
    arms : iterable of Arm
        The arms of a study.
    protocol : Protocol
        The protocol, whose profile selects the weights.

    Returns
    -------
    dict of str to TypicalCost
        Costs by name of the arm. Unknown arms are missing.
    """
    found = {
        arm.name: typical_cost(arm.solver, arm.target, protocol.profile, arm.space, arm.params)
        for arm in arms
    }
    return {name: cost for name, cost in found.items() if cost is not None}


def typical_cost(
    solver: str, target: str, profile: str, space: Mapping[str, Any], params: Mapping[str, Any]
) -> TypicalCost | None:
    """Return the typical cost of a solver, or of its class.

    Parameters
    ----------
    solver : str
        Name of the solver.
    target : str
        Dotted path of its class.
    profile : str
        Profile of the protocol.
    space : mapping of str to object
        Values or range of each hyper-parameter.
    params : mapping of str to object
        Fixed parameters.

    Returns
    -------
    TypicalCost or None
        None if neither the solver nor its class is known.
    """
    for family in _stored().get(profile, ()):
        solvers = family["solvers"]
        weights = solvers.get(key_of(solver, target), solvers.get(target))
        if weights is not None:
            axes = [_values(space.get(name, params.get(name))) for name in ("C", "gamma")]
            C, gamma = (grid.ravel() for grid in np.meshgrid(*axes))
            return TypicalCost(np.array(weights), family["datasets"], params, C, gamma)
    return None


def _values(declared: Any) -> np.ndarray:
    """Return the values of a hyper-parameter.

    Parameters
    ----------
    declared : object
        A list of values, a range, or a single value.

    Returns
    -------
    float array, shape (n_values,)
        Values; NaN for each that is not a positive number.
    """
    if isinstance(declared, Mapping):
        low, high = (_positive(declared.get(end)) for end in ("low", "high"))
        return np.array([np.nan]) if np.isnan(low) else np.geomspace(low, high, _RANGE_VALUES)
    values = declared if isinstance(declared, (list, tuple)) else [declared]
    return np.array([_positive(value) for value in values])


class Errors(NamedTuple):
    """Standard deviations of the logarithm of predicted ÷ observed seconds, from studies that were left out.

    Attributes
    ----------
    study : float
        Of the total of a study.
    pair : float
        Of a dataset × arm, around the total of its study.
    candidate : float
        Of a candidate, around the mean of its dataset × arm.
    """

    study: float
    pair: float
    candidate: float


def typical_errors() -> Errors:
    """Return the errors of the costs, as the published studies show them.

    Returns
    -------
    Errors
        Standard deviations.
    """
    return Errors(**_stored()["errors"])


def key_of(solver: str, target: str) -> str:
    """Return the key of a solver's weights, which contains its class.

    A custom solver may have the name of a built-in solver but another class.

    Parameters
    ----------
    solver : str
        Name of the solver.
    target : str
        Dotted path of its class.

    Returns
    -------
    str
        The key, such as `mnsvm (solvers.MNSVC)`.
    """
    return f"{solver} ({target})"


@cache
def _stored() -> Mapping[str, Any]:
    """Return the content of the file with the weights.

    Returns
    -------
    mapping of str to object
        For each profile a list of families with the weights of `solvers` and of `datasets`, and the `errors`.
    """
    stored: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return stored
