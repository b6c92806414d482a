"""For a paper: a paragraph on methods, and a checklist for reproducing the study."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.design import Design
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.pairwise import all_pairs
from orchestrator.analysis.signed_rank import DECIMALS
from orchestrator.analysis.summaries import average_effort
from orchestrator.report import format as fmt
from orchestrator.report.adjusted import NAMES, is_max_t, patterns
from orchestrator.report.growth import growth_sentences, plan_sentences
from orchestrator.report.section import Paragraph, Section, titled
from orchestrator.report.sections.coverage import coverage_note
from orchestrator.report.sections.protocol import protocol
from orchestrator.report.table import Table, print_table
from orchestrator.store.results import StudyResults
from orchestrator.study.processors import mixed_note
from orchestrator.study.report_choices import HOLM, LEAVE_OUT
from orchestrator.study.text import format_seconds

NOT_RECORDED = "not recorded"

TITLE = "For a paper"


def section(study: Findings) -> Section:
    """Return the section.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section
        A paragraph and the checklist.
    """
    return Section(TITLE, "", [Paragraph(methods(study)), *titled(checklist(study))])


def methods(study: Findings) -> str:
    """Return a paragraph on methods, filled in from the store.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    str
        Empty if the study has no recorded protocol, or selects candidates and has no score.
    """
    if not study.design.protocol or (study.design.selects and findings.is_empty(study)):
        return ""
    design, terms = study.design, protocol(study)
    sentences = [
        f"We compared {_compared(design)} by {terms['Evaluation']}.",
        *growth_sentences(study)[:1],
        *plan_sentences(study)[:1],
        *_incomplete(study),
        f"Hyper-parameter search: {terms['Search']}. Selection criterion: {terms['Selected by']}.",
        f"{_what_is_prepared(study)}: {terms['Preparation']}.",
    ]
    if _has_errors(study):
        sentences.append(
            "Standard errors are corrected for the training rows that folds share (Nadeau and Bengio, 2003)."
        )
    if study.studies:
        sentences.insert(0, f"The results of the studies {fmt.listed([*study.studies])} were merged.")
    sentences += _tested(study) if len(design.datasets) > 1 else _tested_on_one(study)
    if len(design.datasets) > 1 and len(practical := findings.practical(study)):
        margin = fmt.margin(practical["rope"].iloc[0], design.metric)
        sentences.append(
            f"Practical equivalence, a typical difference within {margin}, was assessed by the Bayesian "
            "signed-rank test (Benavoli et al., 2017)."
        )
    if len(findings.sequence(study)):
        sentences.append(
            f"Pairs were also tested after each {design.unit} by an anytime-valid test (Ville, 1939), "
            "adjusted by Holm's method."
        )
    return " ".join([*sentences, f"Software: {_software(study)}. Machines: {_machines(study)}."])


def _compared(design: Design) -> str:
    """Count the arms and the datasets, and the declared combinations if they are not all of them.

    Parameters
    ----------
    design : Design
        The design of the study.
    """
    arms, datasets = len(design.arms), len(design.datasets)
    families = f" of {fmt.plural(design.n_units, 'family')}" if design.families else ""
    text = f"{fmt.plural(arms, 'arm')} on {fmt.plural(datasets, 'dataset')}{families}"
    pairs = arms * datasets
    return text if len(design.pairs) == pairs else f"{text}, {len(design.pairs)} of {pairs} combinations,"


def _has_errors(study: Findings) -> bool:
    """Return whether any mean has a standard error, which requires two outer folds.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frame = findings.scores(study)
    return len(frame) > 0 and bool(frame["corrected_se"].notna().any())


def _what_is_prepared(study: Findings) -> str:
    """Return the name of the preparation: scaling, unless the newest run recorded another one.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    newest = study.provenance[-1] if study.provenance else {}
    return "Preparation of features" if newest.get("preparations") else "Feature scaling"


def _incomplete(study: Findings) -> list[str]:
    """Count the combinations of arm and dataset that lack a score on some outer fold.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    n_incomplete, number = len(findings.incomplete(study)), len(findings.scores(study))
    if not n_incomplete:
        return []
    lack = "lacks" if n_incomplete == 1 else "lack"
    return [
        f"{n_incomplete} of {fmt.plural(number, 'combination')} of arm and dataset {lack} a score on at "
        f"least one outer fold{_counted(study)}."
    ]


def _counted(study: Findings) -> str:
    """Return a clause on the part that combinations without a score took in the tests.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    if study.design.choices.failed == LEAVE_OUT:
        return f" and took part in no test of {fmt.metric_name(study.design.metric)}"
    return "; there, failed refits scored as the majority class"


def _tested(study: Findings) -> list[str]:
    """State which pairs were tested, on how many units, and for how many tests p was adjusted.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    design, tests = study.design, findings.tests(study)
    used = tests[tests["n"] > 0] if len(tests) else tests
    if used.empty:
        return []
    size, n_times, pairs = int(used["family"].iloc[0]), len(findings.time_ratios(study)), len(tests)
    least, most = int(used["n"].min()), int(used["n"].max())
    numbers = fmt.plural(most, design.unit)
    if least < most:
        numbers = f"{least} to {numbers}, those that both arms completed"
    compared = (
        "all pairs of arms were compared"
        if all_pairs(len(design.arms), design.adjustment)
        else f"every other arm was compared with {next(iter(design.arms))}"
    )
    untested, kinds = "", ""
    if len(used) < pairs:
        untested = f" ({len(used)} of {pairs} pairs; the others completed no {design.unit} in common)"
    if n_times:
        kinds = (
            f", {pairs} of {fmt.metric_name(design.metric)} and {n_times} of training times relative to "
            f"those of {next(iter(design.arms))}"
        )
    if is_max_t(study):
        procedure = (
            f"by step-down max-t (Westfall and Young, 1993) of the mean differences at level "
            f"{design.alpha:g} for {fmt.plural(size, 'test')}{kinds}, flipping the signs of whole "
            f"{fmt.plural_of(design.unit)} in {patterns(study)}. Intervals of mean differences are "
            "simultaneous, by the sign patterns of the differences from their means."
        )
    else:
        procedure = (
            "by the exact two-sided Wilcoxon signed-rank test "
            f"at level {design.alpha:g}, adjusted by Holm's method for {fmt.plural(size, 'test')}{kinds}. "
            "Typical differences are Hodges–Lehmann estimates; their intervals are not adjusted."
        )
    late = ""
    if (first := design.choices.first) is not None and first.adjustment != design.adjustment:
        late = f" {NAMES[design.adjustment].capitalize()} was chosen after scores had been seen."
    return [f"On the means of {numbers}, {compared}{untested} {procedure}{late}", _ties(design)]


def _tested_on_one(study: Findings) -> list[str]:
    """State which pairs were tested on the only dataset, and for how many tests p was adjusted.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    (answer,) = findings.dataset_answers(study).values()
    if answer.comparisons["p"].isna().all():
        return []
    compared = "all pairs of arms" if answer.control is None else f"every other arm and {answer.control}"
    return [
        f"On the scores of {answer.n_splits} outer splits, {compared} were compared by the corrected "
        f"resampled t-test (Nadeau and Bengio, 2003) at level {study.design.alpha:g}, adjusted by Holm's "
        "method for "
        f"{fmt.plural(len(answer.comparisons), 'test')}. The result concerns new data of this size and no "
        "other dataset, and is conservative for differences."
    ]


def _adjustment(design: Design) -> str:
    """Return the procedure that adjusts p-values, which is Holm's method on a single dataset.

    Parameters
    ----------
    design : Design
        The design of the study.
    """
    return HOLM if len(design.datasets) == 1 else design.adjustment


def _ties(design: Design) -> str:
    if design.metric == "accuracy":
        return (
            "Two means of a dataset are tied if they differ by less than half a prediction, "
            "0.5/(rows × repeats × seeds)."
        )
    return f"Two means are tied if they agree to {DECIMALS} decimals."


def checklist(study: Findings) -> Table:
    """Print the questions of reproducibility checklists that the store can answer.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Table
        A row for each question.
    """
    rows = [{"item": item, "answer": answer} for item, answer in _items(study)]
    return print_table(
        "checklist",
        "Reproducibility checklist",
        pd.DataFrame(rows),
        {"Item": lambda row: row["item"], "Answer": lambda row: row["answer"]},
        caption="The questions of the NeurIPS checklist and of REFORMS (Kapoor et al., 2024) that the "
        "store can answer. The authors answer the other questions, such as licences and consent.",
        last_is_text=True,
    )


def _items(study: Findings) -> Iterator[tuple[str, str]]:
    design, tests = study.design, findings.tests(study)
    terms = protocol(study)
    datasets = list(design.datasets.values())
    known = [each for each in datasets if each.get("fingerprint")]
    yield (
        "Data: versions",
        f"{len(known)} of {fmt.plural(len(datasets), 'dataset')} with a fingerprint of the content",
    )
    if sizes := [each["n"] for each in datasets if each.get("n")]:
        least = f"{min(sizes):,} to " if min(sizes) < max(sizes) else ""
        yield "Data: sample size", f"{least}{fmt.plural(max(sizes), 'row')}"
    yield "Separation of training and test rows", terms.get("Preparation", NOT_RECORDED)
    copies = [each["tested_copies"] for each in datasets if each.get("tested_copies") is not None]
    most = f"at most {fmt.share(max(copies))} % of a dataset's test rows" if copies else NOT_RECORDED
    yield "Copies of training rows among test rows", most
    yield "Splits and their seeds", terms.get("Evaluation", NOT_RECORDED)
    yield "Choice of hyper-parameters", terms.get("Search", NOT_RECORDED)
    yield "Trainings", coverage_note(study)
    errors = "standard error over outer folds, corrected for the training rows that they share"
    yield "Error bars", errors if _has_errors(study) else "none"
    if len(datasets) == 1:
        (answer,) = findings.dataset_answers(study).values()
        size = len(answer.comparisons) if answer.comparisons["p"].notna().any() else 0
    else:
        size = tests["family"].iloc[0] if len(tests) and tests["n"].any() else 0
    significance = (
        f"{fmt.plural(size, 'test')}, {NAMES[_adjustment(design)]}, level {design.alpha:g}"
        if size
        else "none"
    )
    yield "Significance", significance
    yield "Statistical power", terms.get("Power") or "no test"
    yield "Trained to the optimum", _trained_to_optimum(study)
    seconds = np.nansum(pd.to_numeric(study.trials["fit_seconds"], errors="coerce").astype(float))
    yield "Computing time", f"{format_seconds(float(seconds))}, the sum over all trainings"
    yield "Machines", _machines(study)
    yield "Software", _software(study)
    yield "Code", _code(study)
    commands = dict.fromkeys(" ".join(run.get("command") or []) for run in study.provenance)
    yield "Commands", "; ".join(filter(None, commands)) or NOT_RECORDED


def _trained_to_optimum(study: Findings) -> str:
    """Return for how many dataset × arm a refit is not known to be near the optimum.

    A study that selects no candidate has no refits. There all trainings count, and no arm carries the mark.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    if study.design.selects:
        effort, mark = findings.effort(study), f", marked {fmt.MARK}"
    else:
        effort, mark = average_effort(replace(study.results, outer=study.trials), study.design), ""
    number = int(effort["marked"].sum()) if len(effort) else 0
    if not number:
        return "yes, for all arms that report it"
    return f"not known for {fmt.plural(number, 'dataset × arm').replace('arms', 'arm')}{mark}"


def _machines(study: Findings) -> str:
    hosts = [host for run in _runs(study, study) for host in run.get("hosts") or []]
    kinds = dict.fromkeys(map(fmt.machine, hosts))
    return "; ".join(filter(None, [*kinds, mixed_note(hosts)])) or NOT_RECORDED


def _runs(study: Findings, of: StudyResults) -> list[dict[str, Any]]:
    """Return the runs of a study that trained the reported trials; all runs if none is recorded as such.

    Parameters
    ----------
    study : Findings
        The study of the report.
    of : StudyResults
        The study itself, or one of the merged ones.
    """
    ids = set(study.trials["run_id"])
    return [run for run in of.provenance if run.get("run_id") in ids] or of.provenance


def _software(study: Findings) -> str:
    studies: Mapping[str, StudyResults] = study.studies or {"": study}
    used: dict[str, list[str]] = {}
    for name, each in studies.items():
        texts = [
            ", ".join(f"{package} {number}" for package, number in (run.get("versions") or {}).items())
            for run in _runs(study, each)
        ]
        text = "; later ".join(dict.fromkeys(filter(None, texts)))
        used.setdefault(text or NOT_RECORDED, []).append(name)
    if len(used) > 1:
        return "; ".join(f"in {fmt.listed(names)} {text}" for text, names in used.items())
    return next(iter(used))


def _code(study: Findings) -> str:
    states = [run.get("git") or {} for run in _runs(study, study)]
    commits = dict.fromkeys(
        f"commit {state['commit'][:10]}{' with local changes' if state.get('dirty') else ''}"
        for state in states
        if state.get("commit")
    )
    return "; ".join(commits) or NOT_RECORDED
