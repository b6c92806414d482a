"""Read the selections of a finished study, for a study at fixed hyper-parameters."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.engine.load import find_study, read_results
from orchestrator.search.selected import selected_params
from orchestrator.search.space import Space
from orchestrator.store.files import StoreError
from orchestrator.store.results import PairState, StudyResults
from orchestrator.study.errors import ConfigError
from orchestrator.study.study import (
    CANDIDATES,
    EVERY,
    MEDIAN,
    SELECTED,
    SELECTION_SPLITS,
    Arm,
    Candidate,
    SearchSpec,
    Study,
)
from orchestrator.study.targets import TARGET, targets_in
from orchestrator.study.values import canonical_json, cell, stored_as_numbers
from orchestrator.training.source_hash import class_identity

_NOTHING = object()
"""Marks a stored value that is not on the declared axis."""

_DRAWS = (
    "orchestrator.resampling.sized.SizedShuffleSplit",
    "sklearn.model_selection.GroupShuffleSplit",
    "sklearn.model_selection.ShuffleSplit",
    "sklearn.model_selection.StratifiedShuffleSplit",
)
"""Splitters that draw one split after another, so that their first splits do not depend on `n_splits`."""


def with_selected(study: Study, fingerprints: Mapping[str, str], results: Path) -> Study:
    """Return the study with another study's selections in its search, if its search asks for them.

    The candidate of a dataset × arm is the one that most outer folds have selected. Ties go to the smaller
    value of the first parameter (C), then of the next (gamma). By the rule of the median, it is the median of
    each parameter over the outer folds, and the lower one of two. Under this rule, the number of these folds
    is recorded if the study to run starts with the same ones. All selections of the other study are declared,
    so the declaration is the same for any subset of its datasets.

    Parameters
    ----------
    study : Study
        The study to run.
    fingerprints : mapping of str to str
        Content fingerprints of its datasets, by name.
    results : Path
        Folder that contains the folders of all studies.

    Returns
    -------
    Study
        The study, unchanged if its search does not take selections of a study.

    Raises
    ------
    ConfigError
        If there is no such study, it is this study, or it is not finished on these datasets and arms.
    """
    if study.search.target != SELECTED:
        return study
    other = source_of(study, results)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    is_median, n_splits = study.search.options.get("rule") == MEDIAN, 0
    for (dataset, arm), state in other.states.items():
        if state.complete and (chosen := _chosen(other, arm, state)):
            params = (_median if is_median else _most_often)(other, arm, chosen)
            found.setdefault(dataset, {})[arm] = params
            n_splits = max(n_splits, len(chosen))
    options = {**study.search.options, CANDIDATES: found}
    if is_median and _starts_with_splits_of(study, other):
        options[SELECTION_SPLITS] = n_splits
    search = replace(study.search, options=options)
    if problems := list(_problems(study, search, other, fingerprints)):
        raise ConfigError(list(dict.fromkeys(problems)))
    arms = (with_space(arm, _candidates(search, arm)) for arm in study.arms)
    return replace(study, search=search, arms=tuple(arms))


def _starts_with_splits_of(study: Study, other: StudyResults) -> bool:
    """Return whether the first outer splits of a study are those of the study that selected.

    With another number of splits, they are so only for random splits of a single seed. Another number of
    folds makes other folds, and the splits of a second seed follow all those of the first one.

    Parameters
    ----------
    study : Study
        The study to run.
    other : StudyResults
        Results of the study that has selected.
    """
    declared = {} if other.declaration is None else other.declaration.protocol
    drawn = []
    for protocol in (study.protocol.to_dict(), declared):
        outer, seed = protocol.get("outer"), protocol.get("seed")
        if isinstance(outer, Mapping) and outer.get(TARGET) in _DRAWS and isinstance(seed, int):
            outer = {name: value for name, value in outer.items() if name != "n_splits"}
        drawn.append(canonical_json([outer, seed]))
    return drawn[0] == drawn[1]


def source_of(study: Study, results: Path) -> StudyResults:
    """Return the results of the study from which a search takes its candidates.

    Parameters
    ----------
    study : Study
        The study to run.
    results : Path
        Folder that contains the folders of all studies.

    Returns
    -------
    StudyResults
        Results of the study that `search.study` names.

    Raises
    ------
    ConfigError
        If there is no such study, it is this study, or it selects no candidates.
    """
    try:
        store = find_study(str(study.search.options["study"]), results)
        if store.folder.resolve() == (results / study.name).resolve():
            raise ConfigError(
                [
                    f"search.study={study.name}: expected another study, not the study itself. "
                    "Give this study another name with study=NAME"
                ]
            )
        other = read_results(store)
    except StoreError as error:
        raise ConfigError([f"search.study: {error}"]) from None
    if other.declaration is not None and other.declaration.search.target == EVERY:
        raise ConfigError(
            [
                f"search.study={other.name}: that study trains every candidate with search={EVERY} and "
                "selects none. Name a study with another search, such as search=grid"
            ]
        )
    return other


def _chosen(other: StudyResults, arm: str, state: PairState) -> list[dict[str, Any]]:
    """Return the parameters that each outer fold has selected.

    Parameters
    ----------
    other : StudyResults
        Results of the study that has selected.
    arm : str
        Name of its arm.
    state : PairState
        State of the arm on a dataset, with one selection for each outer fold.

    Returns
    -------
    list of dict of str to object
        The parameters by name; empty if a fold has no selection.
    """
    declared = other.declaration.arms[arm] if other.declaration is not None else {}
    chosen = [params for row in state.selections if (params := stored_params(declared, row)) is not None]
    return chosen if len(chosen) == len(state.selections) else []


def _space(other: StudyResults, arm: str) -> Space:
    """Return the space of an arm of the study that has selected.

    Parameters
    ----------
    other : StudyResults
        Results of that study.
    arm : str
        Name of the arm.

    Returns
    -------
    Space
        Its space, as declared.
    """
    declared = other.declaration.arms[arm] if other.declaration is not None else {}
    return Space(declared.get("space", {}))


def _most_often(other: StudyResults, arm: str, chosen: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the parameters that most outer folds have selected.

    Parameters
    ----------
    other : StudyResults
        Results of the study that has selected.
    arm : str
        Name of its arm.
    chosen : sequence of dict of str to object
        Parameters of each outer fold, at least one.

    Returns
    -------
    dict of str to object
        The parameters by name.
    """
    space = _space(other, arm)
    counts = Counter(map(Candidate.of, chosen))
    # `max` returns the first of equal counts.
    ordered = sorted(counts.items(), key=lambda item: space.point(dict(item[0].params)))
    best, _ = max(ordered, key=lambda item: item[1])
    return {name: best.value(name) for name in space.axes}


def _median(other: StudyResults, arm: str, chosen: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the median of each parameter over the outer folds (Rätsch's protocol).

    Parameters
    ----------
    other : StudyResults
        Results of the study that has selected.
    arm : str
        Name of its arm.
    chosen : sequence of dict of str to object
        Parameters of each outer fold, at least one.

    Returns
    -------
    dict of str to object
        The parameters by name. Each is a value of its axis: of two middle ones, the one that comes first.
    """
    space = _space(other, arm)
    names = list(space.axes)
    points = [space.point({name: params[name] for name in names}) for params in chosen]
    middle = (len(chosen) - 1) // 2
    medians = {}
    for k, name in enumerate(names):
        order = sorted(range(len(chosen)), key=lambda row, k=k: points[row][k])  # type: ignore[misc]
        medians[name] = chosen[order[middle]][name]
    return medians


def stored_params(arm: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the hyper-parameters of a row with the values that its study declared.

    Parameters
    ----------
    arm : mapping of str to object
        Declaration of the arm, with its space.
    row : mapping of str to object
        Row of a trial or of a selection, with a column for each hyper-parameter.

    Returns
    -------
    dict of str to object or None
        The parameters by name, or None if a column holds no value of its axis.
    """
    params = {name: _value(axis, row.get(f"param_{name}")) for name, axis in arm.get("space", {}).items()}
    return None if any(value is _NOTHING for value in params.values()) else params


def _value(axis: Any, stored: Any) -> Any:
    """Return the value of an axis that a column stores.

    Parameters
    ----------
    axis : object
        The declared values of the axis, or its range.
    stored : object
        The value in the column.

    Returns
    -------
    object
        The value on the axis, or `_NOTHING` if none is stored as this value.
    """
    if stored is None:
        return _NOTHING
    if isinstance(axis, Mapping):
        number = float(stored)  # a text if another arm has texts on this axis
        return int(number) if axis.get("integer") else number
    as_stored = float if stored_as_numbers(axis) and not isinstance(stored, str) else cell
    return next((value for value in axis if as_stored(value) == stored), _NOTHING)


def _problems(
    study: Study, search: SearchSpec, other: StudyResults, fingerprints: Mapping[str, str]
) -> Iterator[str]:
    """Yield a sentence for each dataset or arm without usable selections.

    Parameters
    ----------
    study : Study
        The study to run.
    search : SearchSpec
        Its search, with the selections.
    other : StudyResults
        Results of the study that has selected.
    fingerprints : mapping of str to str
        Content fingerprints of the study's datasets, by name.

    Yields
    ------
    str
        The problem and its remedy.
    """
    for dataset, fingerprint in fingerprints.items():
        if problem := other_data(other, dataset, fingerprint):
            yield problem
        else:
            yield from _arm_problems(study, search, other, dataset)


def other_data(other: StudyResults, dataset: str, fingerprint: str) -> str:
    """Return a sentence if the source study does not have the same dataset; otherwise an empty text.

    Parameters
    ----------
    other : StudyResults
        Results of the source study.
    dataset : str
        Name of the dataset.
    fingerprint : str
        Fingerprint of its content in the study to run.

    Returns
    -------
    str
        The problem and its remedy, or an empty text.
    """
    declared = other.declaration.datasets if other.declaration is not None else {}
    if dataset not in declared:
        return (
            f"search.study={other.name}: this study has no dataset {dataset!r}, so there are no "
            f"hyper-parameters for it. It has the datasets {', '.join(declared) or '(none)'}"
        )
    if declared[dataset].get("fingerprint") != fingerprint:
        return (
            f"search.study={other.name}: dataset {dataset!r} of that study differs in content from this "
            "study's. Run one of them again with the data of the other"
        )
    return ""


def _arm_problems(study: Study, search: SearchSpec, other: StudyResults, dataset: str) -> Iterator[str]:
    """Yield a sentence for each arm without usable selections on a dataset.

    Parameters
    ----------
    study : Study
        The study to run.
    search : SearchSpec
        Its search, with the selections.
    other : StudyResults
        Results of the study that has selected.
    dataset : str
        Name of the dataset.

    Yields
    ------
    str
        The problem and its remedy.
    """
    found = search.options[CANDIDATES].get(dataset, {})
    for arm in study.arms:
        params = selected_params(search, dataset, arm) or {}
        wanted = [search.options["arm"]] if search.options.get("arm") else [arm.name, arm.solver]
        source = next((name for name in wanted if (dataset, name) in other.states), None)
        if source is None:
            arms = sorted({name for _, name in other.states})
            yield (
                f"search.study={other.name}: that study has no arm {' or '.join(dict.fromkeys(wanted))}. "
                f"Name one of its arms with search.arm=NAME: {', '.join(arms) or '(none)'}"
            )
        elif not other.states[dataset, source].complete:
            yield (
                f"search.study={other.name}: that study has not finished {source} on {dataset}. "
                "Run its command again until it is done"
            )
        elif source not in found:
            yield (
                f"search.study={other.name}: that study is finished, but has selected no candidate of "
                f"{source} on {dataset} in some outer fold. Leave out the dataset or the solver"
            )
        elif fixed := sorted(params.keys() & arm.params.keys()):
            yield f"solver {arm.name} fixes {', '.join(fixed)}, which search.study selects. Remove it there"


def _candidates(search: SearchSpec, arm: Arm) -> list[Mapping[str, Any]]:
    """Return the candidates that another study has selected for an arm on any dataset.

    Parameters
    ----------
    search : SearchSpec
        Search of the study, with the selections.
    arm : Arm
        The arm of the study to run.

    Returns
    -------
    list of mapping of str to object
        Hyper-parameters by name.
    """
    return [selected_params(search, dataset, arm) or {} for dataset in search.options[CANDIDATES]]


def with_space(arm: Arm, candidates: Sequence[Mapping[str, Any]]) -> Arm:
    """Return an arm whose space holds the values of some candidates.

    Parameters
    ----------
    arm : Arm
        The arm of the study to run.
    candidates : sequence of mapping of str to object
        Hyper-parameters by name.

    Returns
    -------
    Arm
        The arm with its space and the identities of classes in it.
    """
    space = {
        name: _distinct([params[name] for params in candidates if name in params])
        for name in dict.fromkeys(name for params in candidates for name in params)
    }
    named = {name: class_identity(name) for name in sorted(set(targets_in(space)))}
    identities = {name: found for name, found in named.items() if found and found not in arm.identity}
    return replace(arm, space=space, space_identities=identities)


def _distinct(values: list[Any]) -> tuple[Any, ...]:
    """Return the distinct values, in ascending order if they are numbers.

    Parameters
    ----------
    values : list of object
        Values of one parameter.

    Returns
    -------
    tuple of object
        The values. Values that are not numbers keep the order of their first occurrence.
    """
    known = list({cell(value): value for value in values}.values())
    return tuple(sorted(known) if stored_as_numbers(known) else known)
