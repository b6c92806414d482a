"""Changes of what a study compares that were made after its first scores were stored.

A study may grow until a difference is significant. If 8 datasets become 12, 16 and 20 while no difference is
significant, the share of false findings rises from 4 % to 10 %. The records of runs show such changes.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.study.changed_meanings import changed_keys
from orchestrator.study.declaration import (
    OF_SOURCE,
    arm_meaning,
    current_declaration,
    pairs_of,
    search_meaning,
    taken_from_source,
    takes_candidates,
)
from orchestrator.study.planned import declared_plan, number_before_scores
from orchestrator.study.preparation import SCALINGS, Preparation
from orchestrator.study.report_choices import ReportChoices
from orchestrator.study.schemes import n_repeats
from orchestrator.study.study import PREPARE
from orchestrator.study.values import canonical_json

DATASETS, ARMS, SETTINGS = "datasets", "arms", "settings"

_SETTINGS = ("outer", "inner", "seed", "metric", "profile", "max_seconds")
"""Keys of a protocol whose late change is reported; `_preparations` compares its preparation of features."""


@dataclass(frozen=True)
class LateChange:
    """A change of a study after scores had been stored.

    Attributes
    ----------
    kind : {"datasets", "arms", "settings"}
        What was changed.
    date : str
        Date of the run that made the change, or of the last run that declared a removed name, as YYYY-MM-DD;
        empty if it is not recorded.
    added, removed : tuple of str
        Names of datasets or arms. Default: none.
    before : tuple of str
        Names that were declared before any score was stored. Default: none.
    text : str
        Description of changed settings with their earlier values, such as `protocol.outer was 3, now 5`.
        Default: empty.
    is_repeats : bool
        Whether only repeats of the outer splits were added. Default False.
    """

    kind: str
    date: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    text: str = ""
    is_repeats: bool = False


@dataclass
class _Names:
    """Names of one kind that the runs of a study declared.

    Attributes
    ----------
    before : dict of str to dict
        Descriptions by name, of runs that started before any score was stored.
    first : dict of str to str
        Date of the first run that declared each name.
    last : dict of str to str
        Date of the last run that declared each name.
    """

    before: dict[str, dict[str, Any]] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)
    last: dict[str, str] = field(default_factory=dict)


def late_changes(
    runs: Sequence[Mapping[str, Any]], datasets: Collection[str], arms: Collection[str]
) -> list[LateChange]:
    """Return the changes that were made after scores had been stored and that no declaration foresaw.

    Datasets that a plan names or that continue a sequential study, arms that a plan names, and repeats up to
    the planned number were foreseen. The plan is that of the runs that started before any score was stored.

    Parameters
    ----------
    runs : sequence of mapping
        Provenance of every run, oldest first.
    datasets, arms : collection of str
        Names that the report compares.

    Returns
    -------
    list of LateChange
        Added names first, by date; then removed names; then changed settings.
    """
    runs = [run for run in runs if run.get("study")]
    early = number_before_scores(runs)
    if early == len(runs):
        return []
    plan = declared_plan(runs)
    foreseen = {DATASETS: {*plan.datasets}, ARMS: {*plan.arms}}
    if ReportChoices.of(runs[early - 1].get("report") or {}).sequential:
        foreseen[DATASETS] |= {*datasets}
    in_force = current_declaration(runs)
    kept: dict[str, Collection[str]] = {
        DATASETS: in_force.datasets if in_force else datasets,
        ARMS: in_force.arms if in_force else arms,
    }
    changes: list[LateChange] = []
    for kind, shown in ((DATASETS, datasets), (ARMS, arms)):
        names = _names(runs, early, kind)
        changes += _added(kind, names, [name for name in shown if name not in foreseen[kind]])
        changes += _removed(kind, names, kept[kind])
    return [
        *changes,
        *_other_data(runs, early, datasets),
        *_settings(runs, early, arms, plan.repeats),
        *_preparations(runs, early, datasets, arms),
    ]


def _names(runs: Sequence[Mapping[str, Any]], early: int, kind: str) -> _Names:
    """Gather the names of one kind with the dates of the runs that declared them.

    Parameters
    ----------
    runs : sequence of mapping
        Provenance of every run, oldest first.
    early : int
        Number of runs that started before any score was stored.
    kind : {"datasets", "arms"}
        Key of the names in a declaration.
    """
    found = _Names()
    for index, run in enumerate(runs):
        for description in run["study"].get(kind, ()):
            found.first.setdefault(description["name"], _date(run))
            found.last[description["name"]] = _date(run)
            if index < early:
                found.before[description["name"]] = description
    return found


def _date(run: Mapping[str, Any]) -> str:
    return str(run.get("started_at") or "")[:10]


def _added(kind: str, names: _Names, shown: Collection[str]) -> Iterator[LateChange]:
    """Yield a change for each date on which names were added.

    Parameters
    ----------
    kind : {"datasets", "arms"}
        Kind of the names.
    names : _Names
        The declared names.
    shown : collection of str
        Names that the report compares and that no plan foresaw.

    Yields
    ------
    LateChange
        With the names that were added on one date.
    """
    by_date: dict[str, list[str]] = {}
    for name in shown:
        if name in names.first and name not in names.before:
            by_date.setdefault(names.first[name], []).append(name)
    for date, added in sorted(by_date.items()):
        yield LateChange(kind, date, added=tuple(added), before=tuple(names.before))


def _removed(kind: str, names: _Names, kept: Collection[str]) -> Iterator[LateChange]:
    """Yield a change for each date on which names that no longer belong to the study were declared last.

    Parameters
    ----------
    kind : {"datasets", "arms"}
        Kind of the names.
    names : _Names
        The declared names.
    kept : collection of str
        Names that belong to the study now.

    Yields
    ------
    LateChange
        With the names that were declared last on one date.
    """
    by_date: dict[str, list[str]] = {}
    for name, date in names.last.items():
        if name not in kept:
            by_date.setdefault(date, []).append(name)
    for date, removed in sorted(by_date.items()):
        yield LateChange(kind, date, removed=tuple(removed), before=tuple(names.before))


def _other_data(
    runs: Sequence[Mapping[str, Any]], early: int, datasets: Collection[str]
) -> Iterator[LateChange]:
    """Yield a change for each dataset that kept its name and got other content.

    Parameters
    ----------
    runs : sequence of mapping
        Provenance of every run, oldest first.
    early : int
        Number of runs that started before any score was stored.
    datasets : collection of str
        Datasets that the report compares.

    Yields
    ------
    LateChange
        Of the kind "settings", with the date of the first run that had the present content.
    """
    declared: list[dict[str, dict[str, Any]]] = [
        {description["name"]: description for description in run["study"].get(DATASETS, ())} for run in runs
    ]
    old: dict[str, Any]
    new: dict[str, Any]
    for name in datasets:
        old = next((each[name] for each in reversed(declared[:early]) if name in each), {})
        new = next((each[name] for each in reversed(declared[early:]) if name in each), {})
        contents = [description.get("fingerprint") for description in (old, new)]
        if None in contents or contents[0] == contents[1]:
            continue
        index = next(
            i for i in range(early, len(runs)) if declared[i].get(name, {}).get("fingerprint") == contents[1]
        )
        rows = [description.get("n") for description in (old, new)]
        sizes = f" ({rows[0]} rows, now {rows[1]})" if None not in rows and rows[0] != rows[1] else ""
        text = f"{name}: other data under the same name{sizes}"
        yield LateChange(SETTINGS, _date(runs[index]), text=text)


def _preparations(
    runs: Sequence[Mapping[str, Any]], early: int, datasets: Collection[str], arms: Collection[str]
) -> Iterator[LateChange]:
    """Yield a change for each change of the preparation of features that the protocol decides.

    Parameters
    ----------
    runs : sequence of mapping
        Provenance of every run, oldest first.
    early : int
        Number of runs that started before any score was stored.
    datasets, arms : collection of str
        Names that the report compares. The declaration of an arm has its own preparation, if it has one.

    Yields
    ------
    LateChange
        Of the kind "settings", with the date of the first run that had the present preparation.
    """
    prepared = [_prepared(run) for run in runs]
    found: dict[tuple[str, str], tuple[str, list[str]]] = {}
    for pair in ((dataset, arm) for dataset in datasets for arm in arms):
        old = next((each[pair] for each in reversed(prepared[:early]) if pair in each), "")
        new = next((each[pair] for each in reversed(prepared[early:]) if pair in each), "")
        if old and new and old != new:
            index = next(i for i in range(early, len(runs)) if prepared[i].get(pair) == new)
            found.setdefault((old, new), (_date(runs[index]), []))[1].append(pair[0])
    for (old, new), (date, names) in found.items():
        on = f" on {', '.join(dict.fromkeys(names))}" if len(found) > 1 else ""
        yield LateChange(SETTINGS, date, text=f"protocol: {PREPARE} was {old}, now {new}{on}")


def _prepared(run: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return the preparations that the protocol of a run decides, in words and without versions of code.

    Parameters
    ----------
    run : mapping
        Provenance of the run.

    Returns
    -------
    dict of (dataset, arm) to str
        Without the arms that declare their own preparation, and without pairs of which none is recorded.
    """
    study, recorded = run["study"], run.get("preparations") or {}
    protocol = study.get("protocol") or {}
    of_all = protocol.get(PREPARE) or {"name": SCALINGS.get(str(protocol.get("scaling")), "")}
    arms = [description["name"] for description in study.get(ARMS, ()) if not description.get(PREPARE)]
    found = {
        (description["name"], arm): recorded.get(description["name"], {}).get(arm) or of_all
        for description in study.get(DATASETS, ())
        for arm in arms
    }
    return {
        pair: Preparation(**description).words for pair, description in found.items() if description["name"]
    }


def _settings(
    runs: Sequence[Mapping[str, Any]], early: int, arms: Collection[str], repeats: int | None
) -> Iterator[LateChange]:
    """Yield the changes of the protocol and the search, and those of arms that kept their names.

    Parameters
    ----------
    runs : sequence of mapping
        Provenance of every run, oldest first.
    early : int
        Number of runs that started before any score was stored.
    arms : collection of str
        Arms that the report compares.
    repeats : int or None
        Planned number of repeats of the outer splits; None without a plan.

    Yields
    ------
    LateChange
        Of the kind "settings", with the date of the first run that had the present setting.
    """
    before, now = runs[early - 1]["study"], runs[-1]["study"]
    earlier = [*pairs_of(before)]

    def from_source(study: Mapping[str, Any]) -> str:
        return canonical_json([search_meaning(study), *(taken_from_source(study, pair) for pair in earlier)])

    search = "search" if search_meaning(before) != search_meaning(now) else OF_SOURCE
    of_search = search_meaning if search == "search" else from_source
    for kind, meaning in (("protocol", _protocol), (search, of_search)):
        if kind == "protocol" and _is_planned(before, now, repeats):
            continue
        one, other = meaning(before), meaning(now)
        if one != other:
            date = next(_date(run) for run in runs[early:] if meaning(run["study"]) == other)
            text = changed_keys(kind, one, other)
            is_repeats = kind == "protocol" and _adds_repeats(before, now)
            yield LateChange(SETTINGS, date, text=f"{kind}: {text}" if text else kind, is_repeats=is_repeats)
    declared = [
        {
            description["name"]: _arm(description, takes_candidates(run["study"]))
            for description in run["study"].get("arms", ())
        }
        for run in runs
    ]
    for name in arms:
        old = next((each[name] for each in reversed(declared[:early]) if name in each), None)
        new = next((each[name] for each in reversed(declared) if name in each), None)
        if old is not None and new is not None and old != new:
            index = next(i for i in range(early, len(runs)) if declared[i].get(name) == new)
            text = changed_keys("solver", old, new) or "its declaration"
            yield LateChange(SETTINGS, _date(runs[index]), text=f"{name}: {text}")


def _protocol(study: Mapping[str, Any]) -> str:
    protocol = {"profile": "throughput", **(study.get("protocol") or {})}
    return canonical_json(
        {name: _single(protocol.get(name)) for name in _SETTINGS if protocol.get(name) is not None}
    )


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value


def _arm(description: Mapping[str, Any], without_space: bool) -> str:
    """Return what a user declares of an arm as a text, without its code.

    Parameters
    ----------
    description : mapping
        Attributes of the arm, as recorded.
    without_space : bool
        Whether its space follows from the candidates of another study.
    """
    declared = {name: value for name, value in description.items() if name not in _CODE}
    return arm_meaning(declared, without_space)


_CODE = ("identity", "space_identities", "warm_starts")
"""Attributes of an arm that its code determines."""


def _adds_repeats(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return whether two declarations differ only in that the second has more repeats of the outer splits.

    Parameters
    ----------
    before, now : mapping
        Declarations of a study, as recorded.
    """
    old, new = before.get("protocol") or {}, now.get("protocol") or {}
    same = all(old.get(name) == new.get(name) for name in _SETTINGS if name not in ("seed", "outer"))
    folds = [_without_repeats(each.get("outer")) for each in (old, new)]
    seeds = [each if isinstance(each := p.get("seed"), (list, tuple)) else [each] for p in (old, new)]
    is_longer = [*seeds[1][: len(seeds[0])]] == [*seeds[0]]
    return same and folds[0] == folds[1] and is_longer and n_repeats(new) > n_repeats(old)


def _without_repeats(outer: Any) -> Any:
    if not isinstance(outer, Mapping):
        return outer
    return {name: value for name, value in outer.items() if name != "n_repeats"}


def _is_planned(before: Mapping[str, Any], now: Mapping[str, Any], repeats: int | None) -> bool:
    """Return whether two declarations differ by no more than the planned repeats.

    Parameters
    ----------
    before, now : mapping
        Declarations of a study, as recorded.
    repeats : int or None
        Planned number of repeats; None without a plan.
    """
    planned = repeats is not None and n_repeats(now.get("protocol") or {}) <= repeats
    return planned and _adds_repeats(before, now)
