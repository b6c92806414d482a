"""For a paper: a paragraph on methods, and a checklist for reproducing the study."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.design import Design
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.pairwise import ALL_PAIRS_UP_TO
from orchestrator.analysis.signed_rank import DECIMALS
from orchestrator.report import format as fmt
from orchestrator.report.section import Paragraph, Section, titled
from orchestrator.report.sections.coverage import coverage_note
from orchestrator.report.sections.protocol import protocol
from orchestrator.report.table import Table, print_table
from orchestrator.store.results import StudyResults
from orchestrator.study.processors import mixed_note
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
        Empty if the study has no recorded protocol or no score.
    """
    if not study.design.protocol or findings.is_empty(study):
        return ""
    design, said = study.design, protocol(study)
    sentences = [
        f"We compared {_compared(design)} by {said['Evaluation']}.",
        *_lacking(study),
        f"Search: {said['Search']}; selected by {said['Selected by']}.",
        f"Scaling: {said['Scaling']}.",
    ]
    if _has_errors(study):
        sentences.append(
            "Standard errors are corrected for the training rows that folds share (Nadeau and Bengio, 2003)."
        )
    if study.studies:
        sentences.insert(0, f"The studies {fmt.listed([*study.studies])} were put together.")
    sentences += _tested(study)
    if len(practical := findings.practical(study)):
        margin = fmt.margin(practical["rope"].iloc[0], design.metric)
        sentences.append(
            f"Practical equivalence within {margin} was judged by the Bayesian signed-rank test (Benavoli et "
            "al., 2017)."
        )
    if len(findings.sequence(study)):
        sentences.append(
            f"Pairs were also tested after each {design.unit} by an anytime-valid test (Ville, 1939)."
        )
    return " ".join([*sentences, f"{_software(study)} ran on {_machines(study)}."])


def _compared(design: Design) -> str:
    """Count the arms and the datasets, and say where not every arm was declared on every dataset.

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
    """Whether any mean has a standard error, which takes two outer folds.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frame = findings.scores(study)
    return len(frame) > 0 and bool(frame["corrected_se"].notna().any())


def _lacking(study: Findings) -> list[str]:
    """Say how many arms have no score on every outer fold of a dataset.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    lacking, number = len(findings.incomplete(study)), len(findings.scores(study))
    if not lacking:
        return []
    has = "has" if lacking == 1 else "have"
    return [
        f"{lacking} of {fmt.plural(number, 'combination')} of arm and dataset {has} no score on some outer "
        "fold and took part in no test."
    ]


def _tested(study: Findings) -> list[str]:
    """Say which pairs were tested, on how many units, and for how many tests p was adjusted.

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
        if len(design.arms) <= ALL_PAIRS_UP_TO
        else f"every other arm was compared with {next(iter(design.arms))}"
    )
    untested, kinds = "", ""
    if len(used) < pairs:
        untested = f" ({len(used)} of {pairs} pairs; the others completed none in common)"
    if n_times:
        kinds = (
            f", {pairs} of {fmt.metric_name(design.metric)} and {n_times} of training times relative to "
            f"those of {next(iter(design.arms))}"
        )
    return [
        f"On the means of {numbers}, {compared}{untested} by the exact two-sided Wilcoxon signed-rank test "
        f"at level {design.alpha:g}, adjusted by Holm's method for {fmt.plural(size, 'test')}{kinds}; "
        "typical differences are Hodges–Lehmann estimates.",
        _ties(design),
    ]


def _ties(design: Design) -> str:
    if design.metric == "accuracy":
        return (
            "Means of a dataset that differ by less than half a prediction, 0.5/(rows × repeats × seeds), "
            "are ties."
        )
    return f"Means that are equal to {DECIMALS} decimals are ties."


def checklist(study: Findings) -> Table:
    """Print what checklists of reproducibility ask and a store can answer.

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
        {"Asked": lambda row: row["item"], "Answer": lambda row: row["answer"]},
        caption="The questions of the NeurIPS checklist and of REFORMS (Kapoor et al., 2024) that the "
        "store can answer; what it cannot, such as licences and consent, is for the authors to say.",
        last_is_text=True,
    )


def _items(study: Findings) -> Iterator[tuple[str, str]]:
    design, tests, marked = study.design, findings.tests(study), findings.marked(study)
    said = protocol(study)
    facts = list(design.datasets.values())
    known = [fact for fact in facts if fact.get("fingerprint")]
    yield (
        "Data: versions",
        f"{len(known)} of {fmt.plural(len(facts), 'dataset')} with a fingerprint of the content",
    )
    if sizes := [fact["n"] for fact in facts if fact.get("n")]:
        yield "Data: sample size", f"{min(sizes):,} to {max(sizes):,} rows"
    yield "Separation of training and test rows", said.get("Scaling", NOT_RECORDED)
    copies = [fact["tested_copies"] for fact in facts if fact.get("tested_copies") is not None]
    most = f"at most {fmt.share(max(copies))} % of a dataset's test rows" if copies else NOT_RECORDED
    yield "Copies of training rows among test rows", most
    yield "Splits and their seeds", said.get("Evaluation", NOT_RECORDED)
    yield "Choice of hyper-parameters", said.get("Search", NOT_RECORDED)
    yield "Trainings", coverage_note(study)
    errors = "standard error over outer folds, corrected for the training rows that they share"
    yield "Error bars", errors if _has_errors(study) else "none"
    tested = len(tests) > 0 and tests["n"].any()
    size = tests["family"].iloc[0] if tested else 0
    significance = (
        f"{fmt.plural(size, 'test')}, Holm's adjustment, level {design.alpha:g}" if size else "none"
    )
    yield "Significance", significance
    yield "What could have been found", said.get("Power") or "no test"
    number = fmt.plural(len(marked), "dataset × arm").replace("arms", "arm")
    yield "Trained to the optimum", "all that report it" if marked.empty else f"not {number}, marked"
    seconds = np.nansum(pd.to_numeric(study.trials["fit_seconds"], errors="coerce").astype(float))
    yield "Computing time", f"{format_seconds(float(seconds))} of training, added up"
    yield "Machines", _machines(study)
    yield "Software", _software(study)
    yield "Code", _code(study)
    commands = dict.fromkeys(" ".join(run.get("command") or []) for run in study.provenance)
    yield "Commands", "; ".join(filter(None, commands)) or NOT_RECORDED


def _machines(study: Findings) -> str:
    hosts = [host for run in _runs(study, study) for host in run.get("hosts") or []]
    kinds = dict.fromkeys(
        f"{host.get('cpu', 'unknown processor')}, {fmt.plural(int(host.get('cores', 0)), 'core')}, "
        f"{host.get('memory_gb', '?')} GB"
        for host in hosts
    )
    return "; ".join(filter(None, [*kinds, mixed_note(hosts)])) or "machines that were not recorded"


def _runs(study: Findings, of: StudyResults) -> list[dict[str, Any]]:
    """Return the runs of a study that trained what is reported; all if that is not recorded.

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
        used.setdefault(text or "software not recorded", []).append(name)
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
