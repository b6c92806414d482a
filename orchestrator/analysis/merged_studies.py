"""Merging of several studies for one report, and the comparison of the arms that they share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis.design import Design
from orchestrator.analysis.paired_means import half_predictions, of_units, without_ties
from orchestrator.analysis.signed_rank import DECIMALS, hodges_lehmann, signed_rank
from orchestrator.analysis.statistics import holm
from orchestrator.analysis.summaries import n_tested, numbers, timing_rows
from orchestrator.store.results import StudyResults
from orchestrator.study.declaration import Declaration, arm_meaning
from orchestrator.study.errors import ConfigError
from orchestrator.study.processors import processor_name
from orchestrator.study.recorded_choices import report_choices
from orchestrator.study.records import Status
from orchestrator.study.report_choices import HOLM, ReportChoices
from orchestrator.study.study import EVERY, SearchSpec
from orchestrator.study.trials import Pair
from orchestrator.study.values import canonical_json, with_merged_numbers


@dataclass(frozen=True, repr=False)
class MergedStudies(StudyResults):
    """Several studies as the results of one.

    Attributes
    ----------
    studies : dict of str to StudyResults
        The merged studies by their unique names.
    """

    studies: Mapping[str, StudyResults] = None  # type: ignore[assignment]


def merge(results: Sequence[StudyResults], leave_out: Sequence[str] = ()) -> MergedStudies:
    """Merge studies into one, in which equivalent dataset × arm appear once.

    Arms of one name are one arm if their settings, sources, protocol and search are equal, and under the
    profile `timing` their machines too. Otherwise they are called `arm@study`. If the studies have different
    protocols or searches, all arms get such names.

    Parameters
    ----------
    results : sequence of StudyResults
        The studies in the order of the report.
    leave_out : sequence of str
        Arms and datasets that the report leaves out. They are not checked.

    Raises
    ------
    ConfigError
        If they cannot be compared: no recorded declaration, different metrics, or one dataset with different
        content or splits.
    """
    studies = dict(zip(_labels(results), results, strict=True))
    if problems := list(_problems(studies, leave_out)):
        raise ConfigError(problems)
    names = _arm_names(studies)
    sources: dict[Pair, tuple[str, str]] = {}  # the study that provides a dataset × arm, and the arm there
    for study, each in studies.items():
        for (dataset, arm), state in each.states.items():
            pair = dataset, names[study, arm]
            if pair in sources:
                known = studies[sources[pair][0]].states[dataset, arm]
                if (known.complete, len(known.keys)) >= (state.complete, len(state.keys)):
                    continue
            sources[pair] = study, arm
    frames: dict[str, Any] = {
        frame: pd.concat(
            [_taken(getattr(each, frame), study, sources) for study, each in studies.items()],
            ignore_index=True,
        )
        for frame in ("trials", "selections", "outer")
    }
    return MergedStudies(
        name=" + ".join(studies),
        folder=results[0].folder.with_name("+".join(each.name for each in results)),
        **frames,
        provenance=[run for each in results for run in each.provenance],
        excluded=pd.concat([each.excluded for each in results], ignore_index=True),
        states={pair: studies[study].states[pair[0], arm] for pair, (study, arm) in sources.items()},
        lost=[f"{study}: {sentence}" for study, each in studies.items() for sentence in each.lost],
        changed=[f"{study}: {sentence}" for study, each in studies.items() for sentence in each.changed],
        declaration=_declaration(studies, names, sources),
        read_study=results[0].read_study,
        studies=studies,
    )


def merged_choices(merged: MergedStudies, given: Mapping[str, Any]) -> ReportChoices:
    """Return the choices that all studies share, updated by the given ones, which count as post hoc.

    Parameters
    ----------
    merged : MergedStudies
        Studies that are reported together, with their arms and datasets.
    given : mapping of str to any
        Choices of the command line, by name.
    """
    each = [report_choices(study.provenance, {}) for study in merged.studies.values()]
    alike = {
        name: getattr(each[0], name)
        for name in ("alpha", "rope", "families")
        if len({getattr(choices, name) for choices in each}) == 1
    }
    adjustments = {choices.adjustment for choices in each}
    alike["adjust"] = adjustments.pop() if len(adjustments) == 1 else HOLM
    arms = _declared(merged).arms
    if len(references := {choices.reference for choices in each}) == 1:
        alike["reference"] = tuple(name for name in references.pop() if name in arms)
    control = next(iter(arms))
    return replace(ReportChoices.of(alike | dict(given)), first=ReportChoices(control=control, **alike))


def _labels(results: Sequence[StudyResults]) -> list[str]:
    """Return the names of studies, with as many parent folders as make them unique.

    Parameters
    ----------
    results : sequence of StudyResults
        Studies to name, in order.
    """
    parts = [each.folder.absolute().parts for each in results]
    if len(set(parts)) < len(parts):
        raise ConfigError(["study= names one study twice; name different studies, or only this one"])
    depth = 1
    while len({each[-depth:] for each in parts}) < len(parts):
        depth += 1
    return ["/".join(each[-depth:]) for each in parts]


def _declared(study: StudyResults) -> Declaration:
    assert study.declaration is not None
    return study.declaration


def _problems(studies: Mapping[str, StudyResults], leave_out: Sequence[str]) -> list[str]:
    """Return the reasons why studies cannot be compared.

    Parameters
    ----------
    studies : mapping of str to StudyResults
        The studies by label.
    leave_out : sequence of str
        Arms and datasets that the report does without.
    """
    unknown = [name for name, study in studies.items() if study.declaration is None]
    if unknown:
        return [
            f"study {name}: no run recorded its declaration, so it cannot be merged; report it separately"
            for name in unknown
        ]
    every = [name for name, study in studies.items() if _declared(study).search.target == EVERY]
    if every and len(every) < len(studies):
        return [
            f"study {name} trains every candidate on the outer splits (search={EVERY}) and has no scores of "
            "selected candidates, so it cannot be merged with a study of another search; report it separately"
            for name in every
        ]
    metrics = {name: _declared(study).protocol.get("metric") for name, study in studies.items()}
    if len(set(metrics.values())) > 1:
        listed = ", ".join(f"{metric} in {name}" for name, metric in metrics.items())
        return [f"the studies have different metrics: {listed}; report each study separately"]
    found: dict[tuple[str, str, str], list[str]] = {}
    for (first, a), (second, b) in combinations(studies.items(), 2):
        for dataset in _declared(a).datasets.keys() & _declared(b).datasets.keys() - {*leave_out}:
            one, other = (_declared(study).datasets[dataset] for study in (a, b))
            for key, what in (("fingerprint", "contents"), ("split_hash", "splits")):
                if one.get(key) != other.get(key):
                    found.setdefault((what, first, second), []).append(dataset)
                    break
    return [
        f"the {what} of {', '.join(sorted(datasets))} differ between {first} and {second}, so scores cannot "
        f"be paired; leave them out with report.leave_out=[{','.join(sorted(datasets))}], or report each "
        "study separately"
        for (what, first, second), datasets in found.items()
    ] or _same_content(studies, leave_out)


def _same_content(studies: Mapping[str, StudyResults], leave_out: Sequence[str]) -> list[str]:
    """Return a problem for each dataset that two studies name differently, which would count twice.

    Parameters
    ----------
    studies : mapping of str to StudyResults
        The studies by label.
    leave_out : sequence of str
        Arms and datasets that the report does without.
    """
    called: dict[str, tuple[str, str]] = {}
    problems = []
    for study, each in studies.items():
        for dataset, description in _declared(each).datasets.items():
            content = description.get("fingerprint")
            if content is None or dataset in leave_out:
                continue
            name, first = called.setdefault(content, (dataset, study))
            if name != dataset and first != study:
                problems.append(
                    f"dataset {dataset} of {study} has the content of {name} of {first} and would count "
                    f"twice; leave one of them out with report.leave_out=[{dataset}]"
                )
    return problems


def _arm_names(studies: Mapping[str, StudyResults]) -> dict[tuple[str, str], str]:
    """Return the name of each arm of a study in the merged report.

    Parameters
    ----------
    studies : mapping of str to StudyResults
        The studies by label.
    """
    declared = {study: _declared(each) for study, each in studies.items()}
    alike = (
        len({canonical_json([_protocol(each), each.search.to_record()]) for each in declared.values()}) == 1
    )
    several = {
        arm
        for first, second in combinations(studies, 2)
        for arm in declared[first].arms.keys() & declared[second].arms.keys()
        if differing_parts(arm, studies[first], studies[second])
    }
    return {
        (study, arm): arm if alike and arm not in several else f"{arm}@{study}"
        for study, each in declared.items()
        for arm in each.arms
    }


def _protocol(declaration: Declaration) -> Any:
    return with_merged_numbers(declaration.protocol)


def differing_parts(arm: str, first: StudyResults, second: StudyResults) -> list[str]:
    """Return the respects in which an arm of two studies differs; empty if they are equivalent.

    Parameters
    ----------
    arm : str
        Name of the arm.
    first : StudyResults
        A study that declares the arm.
    second : StudyResults
        Another study that declares the arm.
    """
    a, b = _declared(first), _declared(second)
    one, other = a.arms[arm], b.arms[arm]
    parts = {
        "settings": any(one.get(name) != other.get(name) for name in ("target", "params", "warm_starts")),
        "sources or versions": any(
            one.get(name) != other.get(name) for name in ("identity", "space_identities")
        ),
        "space": len({arm_meaning({"space": each.get("space", {})}) for each in (one, other)}) > 1,
        "protocol": canonical_json(_protocol(a)) != canonical_json(_protocol(b)),
        "search": a.search.text != b.search.text,
        "machine": a.protocol.get("profile") == b.protocol.get("profile") == "timing"
        and machines(first) != machines(second),
    }
    found = [name for name, differs in parts.items() if differs]
    shared = a.pairs.keys() & b.pairs.keys()
    identities = [(a.pairs[pair].identity, b.pairs[pair].identity) for pair in shared if pair[1] == arm]
    if not found and any(x and y and x.shared_gram != y.shared_gram for x, y in identities):
        return ["sharing of kernel matrices"]
    return found


def machines(study: StudyResults) -> list[str]:
    """Return the kinds of machines that a study ran on.

    Parameters
    ----------
    study : StudyResults
        The study, with its provenance.
    """
    hosts = [host for run in study.provenance for host in run.get("hosts") or []]
    kinds = (f"{processor_name(host)}, {host.get('cores', '?')} cores" for host in hosts)
    return sorted(set(kinds))


def _taken(frame: pd.DataFrame, study: str, sources: Mapping[Pair, tuple[str, str]]) -> pd.DataFrame:
    """Return the rows of the dataset × arm that a study provides, under their new names.

    Parameters
    ----------
    frame : DataFrame
        Trials, selections or refits of the study.
    study : str
        Label of the study.
    sources : mapping of (dataset, arm) to tuple[str, str]
        For each new dataset × arm the study that provides it, and the name of the arm there.
    """
    names = {(dataset, arm): new for (dataset, new), (source, arm) in sources.items() if source == study}
    new = [names.get(pair) for pair in zip(frame["dataset"], frame["solver"], strict=True)]
    frame = frame.assign(solver=pd.array(new, dtype=object))
    return frame[np.array([name is not None for name in new], dtype=bool)]  # also of a frame without rows


def _declaration(
    studies: Mapping[str, StudyResults],
    names: Mapping[tuple[str, str], str],
    sources: Mapping[Pair, tuple[str, str]],
) -> Declaration:
    datasets: dict[str, dict[str, Any]] = {}
    arms: dict[str, dict[str, Any]] = {}
    for study, each in studies.items():
        datasets = datasets | {
            name: description
            for name, description in _declared(each).datasets.items()
            if name not in datasets
        }
        for arm, description in _declared(each).arms.items():
            arms.setdefault(names[study, arm], {**description, "name": names[study, arm]})
    searches = {study: _declared(each).search for study, each in studies.items()}
    alike = len({search.text for search in searches.values()}) == 1
    words = "; ".join(f"{search.words} in {study}" for study, search in searches.items())
    return Declaration(
        datasets=datasets,
        arms=arms,
        protocol=_merged_protocol({study: _declared(each).protocol for study, each in studies.items()}),
        search=next(iter(searches.values())) if alike else SearchSpec(words),
        pairs={
            pair: replace(_declared(studies[study]).pairs[pair[0], arm], identity=None)
            for pair, (study, arm) in sources.items()
        },
        superseded={},
    )


def _merged_protocol(protocols: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the common entries of protocols, with differing entries in words.

    Parameters
    ----------
    protocols : mapping of str to mapping of str to any
        The protocols by label of the study.
    """
    first, *others = protocols.values()
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(key for protocol in protocols.values() for key in protocol):
        values = {study: protocol.get(name) for study, protocol in protocols.items()}
        if all(protocol.get(name) == first.get(name) for protocol in others):
            merged[name] = first.get(name)
        elif name == "also":
            merged[name] = [
                metric
                for metric in first.get(name) or ()
                if all(metric in (v or ()) for v in values.values())
            ]
        elif name != "own_metrics":
            merged[name] = "; ".join(
                f"{'none' if v is None else v} in {study}" for study, v in values.items()
            )
    return merged


def compare_arms(studies: Mapping[str, StudyResults], design: Design) -> pd.DataFrame:
    """Compare every arm that several of the studies have, for each pair of studies.

    Columns: arm, first, second (studies), differs (in what, as text; empty: the same), n_common (trials with
    the same key in both), n_agree (those of them with the same score), n (datasets or families that both have
    completed), estimate, low, high, confidence (Hodges–Lehmann, second − first), p, p_holm, time_ratio
    (geometric mean over datasets of the mean training times of the refits, second / first, of rows of the
    profile `timing` none of which was stopped), n_timed (datasets), first_machine, second_machine.

    Parameters
    ----------
    studies : mapping of str to StudyResults
        The merged studies by label.
    design : Design
        The design of the merged study.
    """
    table = []
    for (first, a), (second, b) in combinations(studies.items(), 2):
        for arm in _declared(a).arms:
            if arm not in _declared(b).arms or arm in design.choices.leave_out:
                continue
            one, other = (_rows_of(study.trials, arm, design) for study in (a, b))
            both = one.merge(other, on="key", suffixes=("", "_second"))
            scores = both[["score", "score_second"]]
            means = pd.DataFrame({name: _means(study, arm, design) for name, study in ((0, a), (1, b))})
            differences = (means[1] - means[0]).dropna() if len(means) else pd.Series(dtype=float)
            differences = without_ties(differences, half_predictions(design.metric, n_tested(a.outer)))
            differences = of_units(differences.to_frame(), design.families).iloc[:, 0].round(DECIMALS)
            test, shift = signed_rank(differences), hodges_lehmann(differences, 1 - design.alpha)
            ratios = np.log(
                (seconds_by_dataset(b, arm, design) / seconds_by_dataset(a, arm, design)).dropna().to_numpy()
            )
            table.append(
                {
                    "arm": arm,
                    "first": first,
                    "second": second,
                    "differs": ", ".join(differing_parts(arm, a, b)),
                    "n_common": len(both),
                    "n_agree": int((scores.nunique(axis=1, dropna=False) == 1).sum()),
                    "n": test.n,
                    **vars(shift),
                    "p": test.p if test.n else nan,
                    "time_ratio": float(np.exp(ratios.mean())) if len(ratios) else nan,
                    "n_timed": len(ratios),
                    "first_machine": "; ".join(machines(a)),
                    "second_machine": "; ".join(machines(b)),
                }
            )
    frame = pd.DataFrame(table)
    if len(frame):
        frame["p_holm"] = pd.Series(holm(frame["p"].fillna(1.0).to_numpy())).where(frame["n"] > 0)
    return frame


def _rows_of(frame: pd.DataFrame, arm: str, design: Design) -> pd.DataFrame:
    return frame[(frame["solver"] == arm) & frame["dataset"].isin(list(design.datasets))]


def _means(study: StudyResults, arm: str, design: Design) -> pd.Series:
    """Return the mean score of each dataset with a score on every outer fold.

    Parameters
    ----------
    study : StudyResults
        One of the merged studies.
    arm : str
        Name of the arm.
    design : Design
        The design of the study.
    """
    rows = _rows_of(study.outer, arm, design)
    return _of_complete(rows, numbers(rows["score"]), design)


def seconds_by_dataset(study: StudyResults, arm: str, design: Design) -> pd.Series:
    """Return the mean training time of each dataset with all refits timed and none stopped.

    Parameters
    ----------
    study : StudyResults
        One of the merged studies.
    arm : str
        Name of the arm.
    design : Design
        The design of the study.
    """
    rows = timing_rows(_rows_of(study.outer, arm, design))
    seconds = numbers(rows["fit_seconds"])
    return _of_complete(rows, np.where(rows["status"].eq(Status.OK) & (seconds > 0), seconds, nan), design)


def _of_complete(rows: pd.DataFrame, values: np.ndarray, design: Design) -> pd.Series:
    found = pd.DataFrame({"dataset": rows["dataset"].to_numpy(), "value": values}).dropna()
    found = found.groupby("dataset")["value"].agg(["mean", "size"])
    complete = [number == design.n_outer(str(dataset)) for dataset, number in found["size"].items()]
    return found.loc[complete, "mean"]
