"""What a paper has to say of a study: a paragraph on methods, and a checklist for reproducing it."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.merged_studies import MergedStudies
from orchestrator.analysis.pairwise import ALL_PAIRS_UP_TO
from orchestrator.report import format as fmt
from orchestrator.report.captions import protocol
from orchestrator.report.coverage import coverage_note
from orchestrator.report.table import Table, print_table
from orchestrator.study.processors import mixed_note
from orchestrator.study.text import format_seconds

NOT_RECORDED = "not recorded"


def methods(findings: Findings) -> str:
    """Return a paragraph on methods, filled in from the store."""
    if not findings.design.protocol or findings.is_empty:
        return ""
    design, said = findings.design, protocol(findings)
    control = next(iter(design.arms))
    compared = f"{fmt.plural(len(design.arms), 'arm')} on {fmt.plural(len(design.datasets), 'dataset')}"
    sentences = [
        f"We compared {compared} by {said['Evaluation']}.",
        f"Search: {said['Search']}; selected by {said['Selected by']}.",
        f"Scaling: {said['Scaling']}.",
        "Standard errors are corrected for the training rows that folds share (Nadeau and Bengio, 2003).",
    ]
    if isinstance(findings.results, MergedStudies):
        sentences.insert(0, f"The studies {fmt.listed([*findings.results.studies])} were put together.")
    if len(findings.tests):
        size, n = findings.tests["family"].iloc[0], int(findings.tests["n"].max())
        all_pairs = len(design.arms) <= ALL_PAIRS_UP_TO
        compared = (
            "all pairs of arms were compared" if all_pairs else f"every arm was compared with {control}"
        )
        sentences.append(
            f"On the means of {fmt.plural(n, 'dataset')}, {compared} by the exact two-sided "
            f"Wilcoxon signed-rank test at level {design.alpha:g}, adjusted by Holm's method for "
            f"{fmt.plural(size, 'test')}; typical differences are Hodges–Lehmann estimates."
        )
    if len(findings.practical):
        margin = fmt.margin(findings.practical["rope"].iloc[0], design.metric)
        sentences.append(
            f"Practical equivalence within {margin} was judged by the Bayesian signed-rank test (Benavoli et "
            "al., 2017)."
        )
    if len(findings.sequence):
        sentences.append("Pairs were also tested after each dataset by an anytime-valid test (Ville, 1939).")
    return " ".join([*sentences, f"{_software(findings)} ran on {_machines(findings)}."])


def checklist(findings: Findings) -> Table:
    """Print what checklists of reproducibility ask and a store can answer."""
    rows = [{"item": item, "answer": answer} for item, answer in _items(findings)]
    return print_table(
        "checklist",
        "Reproducibility checklist",
        pd.DataFrame(rows),
        {"Asked": lambda row: row["item"], "Answer": lambda row: row["answer"]},
        last_is_text=True,
    )


def _items(findings: Findings) -> Iterator[tuple[str, str]]:
    design, results = findings.design, findings.results
    said = protocol(findings)
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
    yield "Trainings", coverage_note(findings)
    yield "Error bars", "standard error over outer folds, corrected for the training rows that they share"
    tested = len(findings.tests) > 0 and findings.tests["n"].any()
    size = findings.tests["family"].iloc[0] if tested else 0
    tests = f"{fmt.plural(size, 'test')}, Holm's adjustment, level {design.alpha:g}" if size else "none"
    yield "Significance", tests
    yield "What could have been found", said.get("Power") or "no test"
    marked = fmt.plural(len(findings.marked), "dataset × arm").replace("arms", "arm")
    yield "Trained to the optimum", "all that report it" if findings.marked.empty else f"not {marked}, marked"
    seconds = np.nansum(pd.to_numeric(results.trials["fit_seconds"], errors="coerce").astype(float))
    yield "Computing time", f"{format_seconds(float(seconds))} of training, added up"
    yield "Machines", _machines(findings)
    yield "Software", _software(findings)
    yield "Code", _code(findings)
    commands = dict.fromkeys(" ".join(run.get("command") or []) for run in results.provenance)
    yield "Commands", "; ".join(filter(None, commands)) or NOT_RECORDED


def _machines(findings: Findings) -> str:
    hosts = [host for run in findings.results.provenance for host in run.get("hosts") or []]
    kinds = dict.fromkeys(
        f"{host.get('cpu', 'unknown processor')}, {fmt.plural(int(host.get('cores', 0)), 'core')}, "
        f"{host.get('memory_gb', '?')} GB"
        for host in hosts
    )
    return "; ".join(filter(None, [*kinds, mixed_note(hosts)])) or "machines that were not recorded"


def _software(findings: Findings) -> str:
    results = findings.results
    studies = results.studies if isinstance(results, MergedStudies) else {"": results}
    used: dict[str, list[str]] = {}
    for name, study in studies.items():
        versions = (study.provenance[-1].get("versions") or {}) if study.provenance else {}
        text = ", ".join(f"{package} {number}" for package, number in versions.items())
        used.setdefault(text or "software not recorded", []).append(name)
    if len(used) > 1:
        return "; ".join(f"in {fmt.listed(names)} {text}" for text, names in used.items())
    return next(iter(used))


def _code(findings: Findings) -> str:
    states = [run.get("git") or {} for run in findings.results.provenance]
    commits = dict.fromkeys(
        f"commit {state['commit'][:10]}{' with local changes' if state.get('dirty') else ''}"
        for state in states
        if state.get("commit")
    )
    return "; ".join(commits) or NOT_RECORDED
