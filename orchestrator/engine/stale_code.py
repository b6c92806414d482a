"""Say which stored trials of a study were made by other code than today's, without importing the solvers."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.store.part_summaries import PairSummary
from orchestrator.study.declaration import Declaration
from orchestrator.study.equivalences import SameCode
from orchestrator.study.study import PATH_PARAM
from orchestrator.study.targets import targets_in
from orchestrator.study.text import format_seconds
from orchestrator.study.trials import Pair
from orchestrator.training.source_hash import identity_in

SHARE, AT_LEAST = 0.01, 100
"""Share of the trials of a dataset × arm that an acceptance trains again, and their smallest number."""


def acceptance_sentence(
    study: str,
    arms: Sequence[str],
    n_stored: int,
    n_drawn: int,
    seconds: float,
    clock: str = "CPU time",
) -> str:
    """Return what an acceptance of stale trials would train.

    Parameters
    ----------
    study : str
        Name of the study.
    arms : sequence of str
        Names of the arms.
    n_stored, n_drawn : int
        Numbers of stale trials, and of those to train again.
    seconds : float
        Expected time, in seconds.
    clock : {"CPU time", "wall time"}
        Kind of the time. Default "CPU time".

    Returns
    -------
    str
        A sentence without a full stop.
    """
    return (
        f"{n_stored:,} stored trials of {', '.join(arms)} were made by other code. svmbench accept "
        f"study={study} trains {n_drawn:,} of them again, in about {format_seconds(seconds)} of {clock}, "
        "and keeps all if these are the same"
    )


def stale_code(
    study: str,
    runs: Sequence[Mapping[str, Any]],
    declaration: Declaration,
    pairs: Mapping[Pair, PairSummary],
) -> list[str]:
    """Return a sentence about stored trials that were made by other code, if there are any.

    Arms that consist of several classes are left out, because only imports show their code.

    Parameters
    ----------
    study : str
        Name of the study.
    runs : sequence of mapping of str to object
        Provenance of every run.
    declaration : Declaration
        The current declaration.
    pairs : mapping of Pair to PairSummary
        State of each dataset × arm.

    Returns
    -------
    list of str
        At most one sentence.
    """
    same_code = SameCode(runs)
    changed = [name for name, description in declaration.arms.items() if _has_changed(description, same_code)]
    found = {pair: state for pair, state in pairs.items() if pair[1] in changed and state.stored}
    if not found:
        return []
    drawn = {pair: _n_drawn(state.stored, declaration.arms[pair[1]]) for pair, state in found.items()}
    seconds = sum(state.seconds * drawn[pair] / state.stored for pair, state in found.items())
    n_stored = sum(state.stored for state in found.values())
    arms = [name for name in changed if any(pair[1] == name for pair in found)]
    # The summaries of parts hold wall times.
    return [acceptance_sentence(study, arms, n_stored, sum(drawn.values()), seconds, "wall time")]


def _has_changed(description: Mapping[str, Any], same_code: SameCode) -> bool:
    """Return whether the code of an arm differs from the recorded one.

    Parameters
    ----------
    description : mapping of str to object
        Attributes of the arm, as recorded.
    same_code : SameCode
        Versions of code that give the same numbers.

    Returns
    -------
    bool
        False if only an import could show it.
    """
    target, recorded = str(description.get("target", "")), str(description.get("identity", ""))
    if not recorded or [*targets_in([description.get("params"), description.get("space")])]:
        return False
    module, name = target.rpartition(".")[0], target.rpartition(".")[2]
    words = recorded.split()
    if len(words) % 2 == 0 and "." in words[0]:  # the module that defines the class comes first
        module = words[0]
    same, now = same_code.of(str(description["name"])), identity_in(module, name)
    return bool(now) and same(recorded) != same(now)  # a module that is not found has no identity


def _n_drawn(n_stored: int, description: Mapping[str, Any]) -> int:
    """Return about how many trials of a dataset × arm an acceptance trains again.

    Parameters
    ----------
    n_stored : int
        Number of its stored trials.
    description : mapping of str to object
        Attributes of the arm, as recorded.

    Returns
    -------
    int
        Number of trials. Paths with warm starts are trained as a whole.
    """
    values = description.get("space", {}).get(PATH_PARAM, ())
    length = len(values) if description.get("warm_starts") and not isinstance(values, Mapping) else 1
    return min(n_stored, length * max(AT_LEAST, math.ceil(SHARE * n_stored / max(1, length))))
