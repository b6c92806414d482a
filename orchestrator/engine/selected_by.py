"""What a finished study has selected, for a study at fixed hyper-parameters."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.engine.load import find_study, read_results
from orchestrator.search.selected import selected_params
from orchestrator.search.space import Space
from orchestrator.store.files import StoreError
from orchestrator.store.results import PairState, StudyResults
from orchestrator.study.errors import ConfigError
from orchestrator.study.study import CANDIDATES, SELECTED, Arm, SearchSpec, Study
from orchestrator.study.targets import targets_in
from orchestrator.study.values import cell, stored_as_numbers
from orchestrator.training.source_hash import class_identity

_NOTHING = object()


def with_selected(study: Study, fingerprints: Mapping[str, str], results: Path) -> Study:
    """Return a study that takes another's selections with these in its search; any other one as it is.

    The candidate of a dataset × arm is the one that most outer folds have selected; ties go to the smaller
    value of the first parameter (C), then of the next (gamma). All that the other study has selected is
    declared, so that the declaration is the same for any of its datasets.

    Parameters
    ----------
    study : Study
    fingerprints : mapping of str to str
        By dataset.
    results : Path
        The folder of studies.

    Raises
    ------
    ConfigError
        If there is no such study, or it is this one, or not finished with these datasets and arms.
    """
    if study.search.target != SELECTED:
        return study
    name = str(study.search.options["study"])
    try:
        store = find_study(name, results)
        if store.folder.resolve() == (results / study.name).resolve():
            raise ConfigError(
                [
                    f"search.study names the study itself, {study.name!r}; give this one another name with "
                    "study=NAME"
                ]
            )
        other = read_results(store)
    except StoreError as error:
        raise ConfigError([f"search.study: {error}"]) from None
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for (dataset, arm), state in other.states.items():
        if state.complete and (params := _most_often(other, arm, state)) is not None:
            found.setdefault(dataset, {})[arm] = params
    search = replace(study.search, options={**study.search.options, CANDIDATES: found})
    if problems := list(_problems(study, search, other, fingerprints)):
        raise ConfigError(list(dict.fromkeys(problems)))
    return replace(study, search=search, arms=tuple(_with_space(arm, search) for arm in study.arms))


def _most_often(other: StudyResults, arm: str, state: PairState) -> dict[str, Any] | None:
    """Return the parameters that most outer folds have selected; None if one of them has selected none."""
    facts = other.declaration.arms[arm] if other.declaration is not None else {}
    space = Space(facts.get("space", {}))
    counts = Counter(
        tuple(_value(axis, row.get(f"param_{name}")) for name, axis in facts.get("space", {}).items())
        for row in state.selections
    )
    if not counts or any(value is _NOTHING for values in counts for value in values):
        return None
    names = list(space.axes)
    # Of equal counts `max` keeps the first.
    ordered = sorted(counts.items(), key=lambda item: space.point(dict(zip(names, item[0], strict=True))))
    most, _ = max(ordered, key=lambda item: item[1])
    return dict(zip(names, most, strict=True))


def _value(axis: Any, stored: Any) -> Any:
    """Return the value of an axis that is stored in a column."""
    if stored is None:
        return _NOTHING
    if isinstance(axis, Mapping):
        return int(stored) if axis.get("integer") else stored
    as_stored = float if stored_as_numbers(axis) else cell
    return next((value for value in axis if as_stored(value) == stored), _NOTHING)


def _problems(
    study: Study, search: SearchSpec, other: StudyResults, fingerprints: Mapping[str, str]
) -> Iterator[str]:
    declared = other.declaration.datasets if other.declaration is not None else {}
    for dataset, fingerprint in fingerprints.items():
        if dataset not in declared:
            yield (
                f"search.study: study {other.name!r} has no dataset {dataset!r}, so that no hyper-parameters "
                f"are selected for it; it has {', '.join(declared) or 'none'}"
            )
        elif declared[dataset].get("fingerprint") != fingerprint:
            yield (
                f"search.study: dataset {dataset!r} of study {other.name!r} has other content than that of "
                "this study; run one of them again with the data of the other"
            )
        else:
            yield from _arm_problems(study, search, other, dataset)


def _arm_problems(study: Study, search: SearchSpec, other: StudyResults, dataset: str) -> Iterator[str]:
    for arm in study.arms:
        params = selected_params(search, dataset, arm)
        wanted = [search.options["arm"]] if search.options.get("arm") else [arm.name, arm.solver]
        if params is None and any((dataset, name) in other.states for name in wanted):
            yield (
                f"search.study: study {other.name!r} has not finished {wanted[-1]} on {dataset}; "
                "run its command again until it is done"
            )
        elif params is None:
            arms = sorted({name for _, name in other.states})
            yield (
                f"search.study: study {other.name!r} has no arm {' or '.join(dict.fromkeys(wanted))}; "
                f"name one of its arms with search.arm=NAME: {', '.join(arms) or 'none'}"
            )
        elif fixed := sorted(params.keys() & arm.params.keys()):
            yield f"solver {arm.name} fixes {', '.join(fixed)}, which search.study selects; leave it out"


def _with_space(arm: Arm, search: SearchSpec) -> Arm:
    """Return an arm whose space is all that it could be trained with, whatever datasets its study has."""
    candidates = [selected_params(search, dataset, arm) or {} for dataset in search.options[CANDIDATES]]
    space = {
        name: _distinct([params[name] for params in candidates if name in params])
        for name in dict.fromkeys(name for params in candidates for name in params)
    }
    named = {name: class_identity(name) for name in sorted(set(targets_in(space)))}
    identities = {name: found for name, found in named.items() if found and found not in arm.identity}
    return replace(arm, space=space, space_identities=identities)


def _distinct(values: list[Any]) -> tuple[Any, ...]:
    known = list({cell(value): value for value in values}.values())
    return tuple(sorted(known) if stored_as_numbers(known) else known)
