"""Say which stored trials of a study were made by other code than today's, without importing the solvers."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from orchestrator.store.part_summaries import PairSummary
from orchestrator.study.declaration import Declaration
from orchestrator.study.equivalences import SameCode
from orchestrator.study.study import PATH_PARAM
from orchestrator.study.targets import targets_in
from orchestrator.study.text import format_seconds
from orchestrator.study.trials import Pair
from orchestrator.training.source_hash import identity_now

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
    code_now = cache(identity_now)  # its arms and datasets share code
    found = {
        pair: state
        for pair, state in pairs.items()
        if state.stored and pair in declaration.pairs and _has_changed(pair, declaration, same_code, code_now)
    }
    if not found:
        return []
    drawn = {pair: _n_drawn(state.stored, declaration.arms[pair[1]]) for pair, state in found.items()}
    seconds = sum(state.seconds * drawn[pair] / state.stored for pair, state in found.items())
    n_stored = sum(state.stored for state in found.values())
    arms = [name for name in declaration.arms if any(pair[1] == name for pair in found)]
    # The summaries of parts hold wall times.
    return [acceptance_sentence(study, arms, n_stored, sum(drawn.values()), seconds, "wall time")]


def _has_changed(
    pair: Pair,
    declaration: Declaration,
    same_code: SameCode,
    code_now: Callable[[str, tuple[str, ...]], str],
) -> bool:
    """Return whether the code of an arm, or of its preparation on a dataset, differs from the recorded one.

    Parameters
    ----------
    pair : Pair
        Names of the dataset and the arm.
    declaration : Declaration
        The current declaration.
    same_code : SameCode
        Versions of code that give the same numbers.
    code_now : callable
        Function from a recorded identity and dotted paths to today's identity.

    Returns
    -------
    bool
        False for code that is not found here.
    """
    description, identity = declaration.arms[pair[1]], declaration.pairs[pair].identity
    targets = (str(description.get("target", "")), *targets_in(description.get("params")))
    codes = {str(description.get("identity", "")): targets}
    codes |= {code: (name,) for name, code in (description.get("space_identities") or {}).items()}
    if identity is not None and identity.protocol.prepare is not None:
        codes[identity.protocol.prepare.identity] = identity.protocol.prepare.targets
    same = same_code.of(pair[1])
    now = {code: code_now(code, of_code) for code, of_code in codes.items() if code}
    return any(found and same(code) != same(found) for code, found in now.items())


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
