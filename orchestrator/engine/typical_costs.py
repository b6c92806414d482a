"""What trainings of known solvers cost in finished studies, for those of which a study knows nothing yet.

The factors are learnt from the studies in results/published by `python -m benchmarks.typical_costs`, which
writes typical_costs.json. A core may be half or twice as fast as the one they were measured on.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from orchestrator.study.study import Arm, Protocol

FILE = Path(__file__).with_name("typical_costs.json")


def typical_factors(arms: Iterable[Arm], protocol: Protocol) -> dict[str, float]:
    """Return observed seconds ÷ `cost_model.base_seconds`, of those arms whose solver or class is known."""
    known = _factors().get(protocol.profile, {})
    found = {arm.name: known.get(key_of(arm.solver, arm.target), known.get(arm.target)) for arm in arms}
    return {name: factor for name, factor in found.items() if factor is not None}


def key_of(solver: str, target: str) -> str:
    """Return what a solver's factor is found by: a user's solver of the same name may be another class."""
    return f"{solver} ({target})"


@cache
def _factors() -> Mapping[str, Mapping[str, float]]:
    """Return the factors by profile and then by solver, or by class."""
    factors: Mapping[str, Mapping[str, float]] = json.loads(FILE.read_text(encoding="utf-8"))
    return factors
