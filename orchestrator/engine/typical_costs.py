"""Typical training costs of known solvers, for studies that have no measurements of their own yet.

`python -m benchmarks.typical_costs` computes the factors from the studies in results/published and writes
typical_costs.json. Another core may be half or twice as fast as the one on which they were measured.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from orchestrator.study.study import Arm, Protocol

FILE = Path(__file__).with_name("typical_costs.json")
"""Path of the file with the factors."""


def typical_factors(arms: Iterable[Arm], protocol: Protocol) -> dict[str, float]:
    """Return observed seconds ÷ `cost_model.base_seconds` of each arm whose solver or class is known.

    Parameters
    ----------
    arms : iterable of Arm
        The arms of a study.
    protocol : Protocol
        The protocol, whose profile selects the factors.

    Returns
    -------
    dict of str to float
        Factors by name of the arm. Unknown arms are missing.
    """
    found = {arm.name: typical_factor(arm.solver, arm.target, protocol.profile) for arm in arms}
    return {name: factor for name, factor in found.items() if factor is not None}


def typical_factor(solver: str, target: str, profile: str) -> float | None:
    """Return observed seconds ÷ `cost_model.base_seconds` of a solver, or of its class.

    Parameters
    ----------
    solver : str
        Name of the solver.
    target : str
        Dotted path of its class.
    profile : str
        Profile of the protocol.

    Returns
    -------
    float or None
        Dimensionless factor; None if neither is known.
    """
    known = _factors().get(profile, {})
    return known.get(key_of(solver, target), known.get(target))


def key_of(solver: str, target: str) -> str:
    """Return the key of a solver's factor, which contains its class.

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
def _factors() -> Mapping[str, Mapping[str, float]]:
    """Return the factors by profile, and then by key of a solver or dotted path of a class.

    Returns
    -------
    mapping of str to mapping of str to float
        Dimensionless factors.
    """
    factors: Mapping[str, Mapping[str, float]] = json.loads(FILE.read_text(encoding="utf-8"))
    return factors
