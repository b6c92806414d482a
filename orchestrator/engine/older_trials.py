"""Find the stored trials that an older version of the code has made, and that count for today's code."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.engine.prepare import PreparedStudy
from orchestrator.study.declaration import current_declaration
from orchestrator.study.study import Arm
from orchestrator.study.values import for_json
from orchestrator.training.source_hash import arm_code, class_identity


def counting_older_trials(prepared: PreparedStudy, runs: Sequence[Mapping[str, Any]]) -> PreparedStudy:
    """Return a prepared study for which the trials of older identities with the same meaning count, too.

    Parameters
    ----------
    prepared : PreparedStudy
        The study with its datasets and identities.
    runs : sequence of mapping of str to object
        Provenance of every run, oldest first.

    Returns
    -------
    PreparedStudy
        The study, with older identities in its identities.
    """
    if not runs:
        return prepared
    found = (_same_sources(arm, runs) for arm in prepared.study.arms)
    prepared = replace(prepared, equivalences=[each for each in found if each["codes"]])
    declaration = current_declaration([*runs, for_json(prepared.declaration())])
    pairs = {} if declaration is None else declaration.pairs
    declared = {pair: pairs[pair].identity for pair in prepared.identities if pair in pairs}
    older = {pair: identity.older for pair, identity in declared.items() if identity is not None}
    identities = {
        pair: identity.counting(older.get(pair, ())) for pair, identity in prepared.identities.items()
    }
    return replace(prepared, identities=identities)


def _same_sources(arm: Arm, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the equivalence between the identity of an arm's code and the one of older versions of svmbench.

    Parameters
    ----------
    arm : Arm
        Solver with its sweep values.
    runs : sequence of mapping of str to object
        Provenance of every run.

    Returns
    -------
    dict of str to object
        The equivalence. It maps no code if no run recorded the older identity of these sources.
    """
    recorded: set[str] = set()
    for run in runs:
        for description in (run.get("study") or {}).get("arms", ()):
            if description["name"] == arm.name:
                recorded |= {
                    description.get("identity", ""),
                    *(description.get("space_identities") or {}).values(),
                }
    codes = {}
    if recorded - {arm.identity, *arm.space_identities.values()}:
        codes = {arm_code(arm.target, arm.params, former=True): arm.identity}
        codes |= {class_identity(name, former=True): code for name, code in arm.space_identities.items()}
    codes = {before: now for before, now in codes.items() if before != now and before in recorded}
    return {"solver": arm.name, "codes": codes, "why": "the same sources"}
