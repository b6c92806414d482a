"""Draw the trainings of a timing study from those of a finished study."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from orchestrator.engine.selected_by import other_data, source_of, stored_params, with_space
from orchestrator.search.sampled import draw
from orchestrator.store.results import StudyResults
from orchestrator.study.changed_meanings import changed_keys
from orchestrator.study.declaration import arm_meaning
from orchestrator.study.errors import ConfigError
from orchestrator.study.sample import Cell, Stratum, recorded_strata
from orchestrator.study.study import PREPARE, REFITS, SAMPLE, STRATA, Arm, Candidate, Study
from orchestrator.study.trials import REFIT, DataSource, Pair
from orchestrator.study.values import canonical_json, for_json

TIMING = "timing"
"""Profile under which a sample is measured."""


def with_sample(study: Study, sources: Mapping[str, DataSource], results: Path) -> Study:
    """Return the study with drawn trainings of another study in its search, if its search asks for them.

    The trainings of every finished dataset × arm of the other study are drawn and declared. So the
    declaration is the same for any subset of its datasets and arms.

    Parameters
    ----------
    study : Study
        The study to run.
    sources : mapping of str to DataSource
        Its datasets and their splits, by name.
    results : Path
        Folder that contains the folders of all studies.

    Returns
    -------
    Study
        The study, unchanged if its search does not measure a sample.

    Raises
    ------
    ConfigError
        If there is no such study, it is not finished on these datasets and arms, or it has fewer trainings of
        each candidate than are to be drawn.
    """
    if study.search.target != SAMPLE:
        return study
    other = source_of(study, results)
    if problems := list(dict.fromkeys(_problems(study, sources, other))):
        raise ConfigError(problems)
    folds, seed = (int(study.search.options.get(name, usual)) for name, usual in (("folds", 1), ("seed", 0)))
    drawn: dict[str, dict[str, list[Stratum]]] = {}
    refits: dict[str, dict[str, list[dict[str, Any] | None]]] = {}
    for (dataset, arm), visited in _visited(other).items():
        drawn.setdefault(dataset, {})[arm] = [
            draw(dataset, candidate, cells, folds, seed) for candidate, cells in visited.items()
        ]
        refits.setdefault(dataset, {})[arm] = _selected(other, dataset, arm)
    strata = {dataset: recorded_strata(each) for dataset, each in drawn.items()}
    search = replace(study.search, options={**study.search.options, STRATA: strata, REFITS: refits})
    arms = (with_space(arm, _candidates(arm.name, drawn, refits)) for arm in study.arms)
    return replace(study, search=search, arms=tuple(arms))


def _candidates(
    arm: str,
    drawn: Mapping[str, Mapping[str, list[Stratum]]],
    refits: Mapping[str, Mapping[str, list[dict[str, Any] | None]]],
) -> list[dict[str, Any]]:
    """Return all candidates of an arm.

    Parameters
    ----------
    arm : str
        Name of the arm.
    drawn : mapping of str to mapping of str to list of Stratum
        Drawn trainings by dataset and arm.
    refits : mapping of str to mapping of str to list of dict
        Candidates of the refits by dataset and arm.

    Returns
    -------
    list of dict of str to object
        Hyper-parameters by name, with repeats.
    """
    strata = (stratum for each in drawn.values() for stratum in each.get(arm, ()))
    selected = (params for each in refits.values() for params in each.get(arm, ()))
    return [*(dict(stratum.candidate.params) for stratum in strata), *filter(None, selected)]


def _visited(other: StudyResults) -> dict[Pair, dict[Candidate, list[Cell]]]:
    """Return the inner trainings of each finished dataset × arm, by candidate.

    Parameters
    ----------
    other : StudyResults
        Results of the source study.

    Returns
    -------
    dict of Pair to dict of Candidate to list of (int, int)
        Outer and inner split of each training of a candidate.
    """
    found: dict[Pair, dict[Candidate, list[Cell]]] = {
        pair: {} for pair, state in other.states.items() if state.complete
    }
    arms = {} if other.declaration is None else other.declaration.arms
    names = [str(name) for name in other.trials if str(name).startswith("param_")]
    trials = other.trials.loc[other.trials["inner"] != REFIT, ["dataset", "solver", "outer", "inner", *names]]
    for row in cast("list[dict[str, Any]]", trials.to_dict("records")):
        pair = row["dataset"], row["solver"]
        if pair in found and (params := stored_params(arms[pair[1]], row)) is not None:
            found[pair].setdefault(Candidate.of(params), []).append((int(row["outer"]), int(row["inner"])))
    return found


def _selected(other: StudyResults, dataset: str, arm: str) -> list[dict[str, Any] | None]:
    """Return the hyper-parameters that each outer split of a dataset × arm has selected.

    Parameters
    ----------
    other : StudyResults
        Results of the source study.
    dataset : str
        Name of the dataset.
    arm : str
        Name of the arm.

    Returns
    -------
    list of dict of str to object
        One entry for each outer split; None where every candidate failed.
    """
    assert other.declaration is not None
    declared, state = other.declaration.arms[arm], other.states[dataset, arm]
    rows = {row["outer"]: row for row in state.selections}
    n_outer = len(other.declaration.pairs[dataset, arm].n_inner)
    return [stored_params(declared, rows[outer]) if outer in rows else None for outer in range(n_outer)]


def _problems(study: Study, sources: Mapping[str, DataSource], other: StudyResults) -> Iterator[str]:
    """Yield a sentence for each reason why no trainings can be drawn.

    Parameters
    ----------
    study : Study
        The study to run.
    sources : mapping of str to DataSource
        Its datasets and their splits, by name.
    other : StudyResults
        Results of the source study.

    Yields
    ------
    str
        The problem and its remedy.
    """
    if study.protocol.profile != TIMING:
        yield (
            f"protocol.profile={study.protocol.profile}: search=sample measures times, which are comparable "
            f"only under the profile {TIMING}. Set protocol.profile={TIMING}"
        )
    if other.declaration is not None and other.declaration.search.target == SAMPLE:
        whole = other.declaration.search.options["study"]
        yield (
            f"search.study={other.name}: that study measures a sample of the trainings of {whole}, so their "
            f"total cannot be estimated from it. Set search.study={whole}"
        )
        return
    if other.declaration is not None and _preparation(other.declaration.protocol) != _preparation(
        study.protocol.to_dict()
    ):
        yield (
            f"search.study={other.name}: that study prepares the features differently. Set protocol.prepare "
            "or protocol.scaling as that study does"
        )
    declared = other.declaration.datasets if other.declaration is not None else {}
    folds = int(study.search.options.get("folds", 1))
    for dataset, source in sources.items():
        if problem := other_data(other, dataset, source.fingerprint):
            yield problem
            continue
        if declared[dataset].get("split_hash") != source.split_hash:
            yield (
                f"search.study={other.name}: dataset {dataset!r} of that study has other splits. Set "
                "protocol.outer, protocol.inner and protocol.seed as that study does"
            )
        most = sum(declared[dataset].get("n_inner", ()))
        if folds > most:
            yield (
                f"search.folds={folds}: study {other.name} has {most} trainings of each candidate on "
                f"{dataset}. Set search.folds to at most {most}"
            )
        yield from _arm_problems(study, other, dataset)


def _arm_problems(study: Study, other: StudyResults, dataset: str) -> Iterator[str]:
    """Yield a sentence for each arm that the source study has not finished on a dataset.

    Parameters
    ----------
    study : Study
        The study to run.
    other : StudyResults
        Results of the source study.
    dataset : str
        Name of the dataset.

    Yields
    ------
    str
        The problem and its remedy.
    """
    for arm in study.arms:
        state = other.states.get((dataset, arm.name))
        if state is None:
            known = sorted({name for _, name in other.states})
            yield (
                f"search.study={other.name}: that study has no arm {arm.name} on {dataset}. Choose among its "
                f"arms with solvers=[…]: {', '.join(known) or '(none)'}"
            )
        elif not state.complete:
            yield (
                f"search.study={other.name}: that study has not finished {arm.name} on {dataset}. Run its "
                "command again until it is done"
            )
        elif other.declaration is not None and (
            fixed := sorted(other.declaration.arms[arm.name].get("space", {}).keys() & arm.params.keys())
        ):
            yield f"solver {arm.name} fixes {', '.join(fixed)}, which search.study varies. Remove it there"
        elif other.declaration is not None and (
            changed := _other_parameters(other.declaration.arms[arm.name], arm)
        ):
            yield (
                f"search.study={other.name}: {arm.name} is another arm in that study ({changed}), so the "
                "time of its trainings cannot be estimated here. Use the parameters of that study"
            )


def _other_parameters(recorded: Mapping[str, Any], arm: Arm) -> str:
    """Return in which parameters an arm differs from the arm of its name in the source study, if in any.

    Parameters
    ----------
    recorded : mapping of str to object
        Attributes of the arm in the source study, as recorded.
    arm : Arm
        The arm of the study to run.

    Returns
    -------
    str
        For example `parameters.tol was 0.001, now 0.1`. Its code and its space do not count.
    """
    declared = for_json(arm.to_dict())
    names = "target", "params", PREPARE
    before, now = (arm_meaning({name: each.get(name) for name in names}) for each in (recorded, declared))
    return "" if before == now else changed_keys("solver", before, now)


def _preparation(protocol: Mapping[str, Any]) -> str:
    """Return the preparation of the features in a recorded protocol as a text, without its code.

    Parameters
    ----------
    protocol : mapping of str to object
        Attributes of the protocol, as recorded.

    Returns
    -------
    str
        The scaling, and the name of another preparation.
    """
    return canonical_json([protocol.get("scaling"), (protocol.get(PREPARE) or {}).get("name")])
