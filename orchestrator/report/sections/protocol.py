"""The protocol of the comparison in words, and the tables of datasets and arms."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.design import Design
from orchestrator.analysis.earlier_study import earlier_spread
from orchestrator.analysis.findings import Findings, computed
from orchestrator.report import format as fmt
from orchestrator.report.limits import ARMS_SHOWN
from orchestrator.report.power import detectable_difference, detectable_points
from orchestrator.report.section import Heading, Section, Terms
from orchestrator.report.table import Printer, Table, print_table
from orchestrator.study.families import families
from orchestrator.study.preparation import Preparation
from orchestrator.study.schemes import described, in_words
from orchestrator.study.study import MEDIAN, SAMPLE, SELECTED, SELECTION_SPLITS, fixed_on
from orchestrator.study.targets import TARGET, targets_in
from orchestrator.study.values import cell


def section(study: Findings) -> Section:
    """Return the section.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section
        Terms, and the tables of datasets and arms.
    """
    content = [
        Terms(protocol(study)),
        Heading("Datasets"),
        _datasets(study),
        Heading("Arms"),
        _arms(study),
    ]
    return Section("Protocol of the comparison", "", content, link="Protocol")


@computed
def protocol(study: Findings) -> dict[str, str]:
    """Return the protocol as terms and their explanations.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    dict of str to str
        In the order of the page, without terms that do not apply.
    """
    if not study.design.protocol:
        return {"Protocol": "not recorded: the study's provenance is missing"}
    texts = {
        "Compared": _compared(study.design),
        "Evaluation": _evaluation(study),
        "Search": _search(study),
        "Selected by": _selected_by(study),
        "Scored by": _scored_by(study.design),
        "Preparation": _preparation(study),
        "Profile": _profile(study),
        "Time limit": _time_limit(study.design),
        "Trainings": _trainings(study),
        "Power": _power(study),
        "Worker time": _worker_time(study),
    }
    return {term: text for term, text in texts.items() if text}


def _compared(design: Design) -> str:
    arms, datasets = fmt.plural(len(design.arms), "arm"), fmt.plural(len(design.datasets), "dataset")
    of_families = f" of {fmt.plural(design.n_units, 'family')}" if design.families else ""
    return f"{arms} on {datasets}{of_families}; an arm is a solver with its fixed settings"


def _is_untuned(study: Findings) -> bool:
    """Return whether every arm has a single candidate on each dataset, so that nothing is selected.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    design = study.design
    return all(design.n_candidates(*pair) == 1 for pair in design.pairs)


def _evaluation(study: Findings) -> str:
    design = study.design
    protocol, seed = design.protocol, design.protocol.get("seed")
    if not design.selects:
        splits = [len(each) for each in design.n_inner.values()]
        return (
            "a training of every candidate on the training rows of each outer split, which is scored on its "
            f"test rows ({in_words(protocol.get('outer'), splits)}, without inner splits); seed {cell(seed)} "
            "determines all random draws; the splits are the same for every arm"
        )
    is_fixed = design.search.target == SELECTED or _is_untuned(study)
    splitters = described(protocol, design.n_inner.values(), uses_inner=not is_fixed)
    if splitters:
        is_number = isinstance(seed, int | float)
        seeds = f"seed {seed} determines" if is_number else "these seeds determine"
        splitters += f"; {seeds} all random draws; the splits are the same for every arm"
    if design.search.target == SAMPLE:
        scores = (
            f"scores on the outer {'splits' if splitters else 'folds'} of study "
            f"{design.search.options['study']}, at the hyper-parameters that each of them selected there; "
        )
        return scores + (
            splitters
            or f"{protocol.get('outer')} outer and {protocol.get('inner')} inner folds, stratified, shuffled "
            f"with seed {seed} and the same for every arm"
        )
    if splitters and is_fixed:
        return f"resampling at fixed hyper-parameters: outer splits give the scores; {splitters}"
    if splitters:
        return (
            "nested resampling: outer splits give the scores, inner splits of their training rows select "
            f"the hyper-parameters; {splitters}"
        )
    if is_fixed:
        return (
            f"cross-validation at fixed hyper-parameters: {protocol.get('outer')} folds give the scores; the "
            f"folds are stratified, shuffled with seed {seed} and the same for every arm"
        )
    return (
        f"nested cross-validation: {protocol.get('outer')} outer folds give the scores, "
        f"{protocol.get('inner')} inner folds select the hyper-parameters; the folds are stratified, "
        f"shuffled with seed {seed} and the same for every arm"
    )


def _search(study: Findings) -> str:
    design, search = study.design, study.design.search
    sizes = list(dict.fromkeys(design.grid_size(arm) for arm in design.arms))
    if search.target == "race":
        left, grid = design.left_out(study.states)
        left_out = f"; it omitted {fmt.count(left)} of {fmt.count(grid)} inner trainings" if grid else ""
        return f"{_race(design)}{left_out}"
    if search.target == "selected":
        arm = search.options.get("arm") or "the arm of the same name (or else of the same solver)"
        if search.options.get("rule") == MEDIAN:
            return (
                "none; on each dataset an arm is trained with the medians of the hyper-parameters that "
                f"{arm} selected in study {search.options['study']}"
            )
        return (
            f"none; on each dataset an arm is trained with the hyper-parameters that {arm} selected on most "
            f"outer folds of study {search.options['study']}. All rows took part in that selection, so these "
            "scores are not those of a nested search"
        )
    if search.target == SAMPLE:
        folds, source = fmt.plural(int(search.options.get("folds", 1)), "training"), search.options["study"]
        return (
            f"none; the trainings of study {source} were sampled ({folds} of each candidate) and measured "
            "with the refits of its selections, to estimate the time of all of them"
        )
    if not design.selects:
        return "none; all candidates of each arm are trained"
    fixed = _fixed_values(design)
    if _is_untuned(study):
        return f"none; every arm is trained with its configured hyper-parameters{fixed}"
    if fixed:
        return f"grid, the same for every arm{fixed}"
    if None in sizes:
        return f"{search.words}{', the same for every arm' if ' in ' not in search.target else ''}"
    if len(sizes) == 1:
        return f"grid of {fmt.plural(sizes[0] or 0, 'candidate')} for every arm"
    counts = [f"{arm} {design.grid_size(arm)}" for arm in design.arms]
    return f"grid; candidates: {fmt.listed(counts)}"


def _fixed_values(design: Design) -> str:
    """Describe the hyper-parameters that are fixed on single datasets; empty if there are none.

    Parameters
    ----------
    design : Design
        The design of the study.
    """
    fixed = {dataset: fixed_on(design.search.options, dataset) for dataset in design.datasets}
    texts = [
        f"{', '.join(f'{name}={cell(value)}' for name, value in values.items())} on {dataset}"
        for dataset, values in fixed.items()
        if values
    ]
    return f"; fixed on single datasets: {fmt.listed(texts)}" if texts else ""


def _race(design: Design) -> str:
    options = design.search.options
    if options.get("mode") != "statistical":
        return (
            f"{design.search.words}, the same for every arm, which selects the same candidates as the grid "
            "search"
        )
    over = "test rows of the inner splits" if design.metric == "accuracy" else "inner splits"
    return (
        "statistical race, the same for every arm, which may select other candidates than the grid search: "
        "after each inner split, a paired one-sided sign test eliminates candidates that are worse than the "
        f"leading one, over the {over} so far, at level {options['level']} without adjustment for their "
        "number; only the best of the others stay, so that the race needs "
        f"{100 * options['share']:g} % of the grid's inner trainings, or the trainings of one split of all "
        "candidates and all splits of one candidate, whichever is more"
    )


def _selected_by(study: Findings) -> str:
    design = study.design
    if not design.selects:
        return "none; the best of a grid on test rows is no estimate of accuracy"
    if _is_untuned(study):
        return "none is needed"
    if design.search.target == SAMPLE:
        return f"study {design.search.options['study']}"
    if design.search.options.get("rule") == MEDIAN:
        splits = design.search.options.get(SELECTION_SPLITS)
        number = "" if splits is None else f"{splits} "
        selected = (
            f"median of each hyper-parameter over the {number}outer splits of study "
            f"{design.search.options['study']} (Rätsch's protocol). "
        )
        if splits is None:
            return selected + "The splits here are other ones, but their test rows took part in the selection"
        return selected + (
            "If the splits here are drawn by the same seed, the first ones are those splits, and the others "
            "overlap with them: their test rows took part in the selection"
        )
    if design.search.target == "selected":
        return (
            "number of outer folds; ties go to the smaller value of the first hyper-parameter, then of the "
            "next hyper-parameter"
        )
    return (
        f"mean inner {fmt.metric_name(design.metric)}; ties go to the smaller value of the first "
        "hyper-parameter, or to the one listed first if its values are not all numbers"
    )


def _scored_by(design: Design) -> str:
    text = fmt.metric_name(design.metric)
    if also := design.protocol.get("also"):
        text += f"; also recorded: {fmt.listed([fmt.metric_name(metric) for metric in also])}"
    for metric in design.protocol.get("own_metrics", []):
        text += f"; {fmt.metric_name(metric['name'])} is {metric['definition']}"
    return text


def _preparation(study: Findings) -> str:
    """Describe the preparation of the protocol, and those of single datasets and arms.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    scaling = study.design.protocol.get("scaling")
    known = {
        "train": "each feature is scaled to [0, 1], fitted on the training rows of each trial",
        "dataset": "each feature is scaled to [0, 1], fitted on the whole dataset as in the papers, test "
        "rows included; scores may therefore be slightly too high",
        "none": "features are not scaled",
    }
    newest = study.provenance[-1].get("preparations") or {} if study.provenance else {}
    own = {
        (dataset, arm): Preparation(**description).words
        for dataset, arms in newest.items()
        for arm, description in arms.items()
    }
    where: dict[str, dict[str, None]] = {}
    for (dataset, _), words in own.items():
        where.setdefault(words, {})[dataset] = None
    others = [f"{words} on {fmt.listed([*datasets])}" for words, datasets in where.items()]
    pairs = {(dataset, arm) for dataset in study.design.datasets for arm in study.design.arms}
    common = [] if own.keys() >= pairs else [known.get(str(scaling), str(scaling))]
    return "; ".join([*common, *others])


def _profile(study: Findings) -> str:
    profile = study.design.protocol.get("profile")
    if profile == "timing":
        return (
            "timing: every training runs by itself on one core, starts cold and shares nothing with other "
            "trainings, so times are comparable"
        )
    if profile != "throughput":
        return str(profile)
    text = (
        "throughput: trainings share intermediate results where possible, so their times are not comparable"
    )
    kinds = {"shared_gram": "kernel matrices of inner splits", "warm_started": "warm starts"}
    for column, name in kinds.items():
        found = set(study.trials.loc[study.trials[column].eq(True), "solver"])
        arms = [arm for arm in study.design.arms if arm in found]
        listed = fmt.listed(arms) if len(arms) <= ARMS_SHOWN else fmt.plural(len(arms), "arm")
        text += f"; {name}: {listed or 'none'}"
    return text


def _time_limit(design: Design) -> str:
    seconds = design.protocol.get("max_seconds")
    if isinstance(seconds, str):
        return seconds
    return f"{seconds:g} s per training" if seconds else "none"


def _trainings(study: Findings) -> str:
    frame = findings.coverage(study)
    planned = f"{frame['planned'].sum():,} planned, " if frame["planned"].notna().all() else ""
    return f"{planned}{frame['scored'].sum():,} with a score"


def _power(study: Findings) -> str:
    tests, design = findings.tests(study), study.design
    if tests.empty or not design.selects:
        return ""
    size = int(tests["family"].iloc[0])
    n, alpha, adjustment = design.n_units, design.alpha, design.adjustment
    texts = [detectable_difference(n, size, alpha, design.unit, adjustment)]
    if (spread := earlier_spread(study)) is not None:
        texts.append(detectable_points(n, size, alpha, spread, design.metric, adjustment))
    return " ".join(filter(None, texts))


def _worker_time(study: Findings) -> str:
    share = study.provenance[-1].get("worker_share")
    return (
        ""
        if share is None
        else f"{100 * share:.0f} % spent in preparation, fit and predict in the latest run"
    )


def _datasets(study: Findings) -> Table:
    """Describe the datasets, so that a reader can identify them.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    rows: list[dict[str, Any]] = []
    for name, known in study.design.datasets.items():
        counts = known.get("class_counts") or {}
        total = sum(counts.values())
        rows.append(
            {
                "dataset": name,
                "rows": known.get("n"),
                "features": known.get("d"),
                "classes": known.get("classes"),
                "largest_class": max(counts.values()) / total if total else None,
                "smallest_class": min(counts.values()) / total if total else None,
                "density": known.get("density"),
                "distinct_rows": known.get("distinct_rows"),
                "tested_copies": known.get("tested_copies"),
                "dropped_copies": known.get("dropped_copies"),
                "fingerprint": known.get("fingerprint"),
                "source": known.get("source") or known.get("target"),
            }
        )
    return print_table(
        "datasets",
        "Datasets",
        pd.DataFrame(rows),
        {
            "Dataset": lambda row: row["dataset"],
            "Rows": lambda row: fmt.count(row["rows"]),
            "Features": lambda row: fmt.count(row["features"]),
            "Classes": lambda row: fmt.count(row["classes"]),
            "Largest class": lambda row: fmt.share(row["largest_class"]),
            "Smallest class": lambda row: fmt.share(row["smallest_class"]),
            "Non-zero": lambda row: fmt.share(row["density"]),
            "Copies tested": lambda row: fmt.share(row["tested_copies"]),
            "Fingerprint": lambda row: (row["fingerprint"] or fmt.MISSING)[:8],
        },
        rows=rows,
        caption=_datasets_caption(study),
        last_is_text=True,
    )


def _datasets_caption(study: Findings) -> str:
    text = (
        "Largest and smallest class: their shares of all rows, in per cent. A classifier that always "
        "predicts the largest class has that accuracy. Non-zero: share of the feature values that are not "
        "zero, in per cent. Copies tested: share of the outer folds' test rows whose features equal those of "
        "a training row exactly, in per cent. Fingerprint: first digits of the hash of the content."
    )
    dropped = [
        f"{name} {fmt.count(known['dropped_copies'])}"
        for name, known in study.design.datasets.items()
        if known.get("dropped_copies")
    ]
    if dropped:
        text += f" Duplicate rows that were dropped before splitting: {', '.join(dropped)}."
    if found := families(study.design.datasets):
        counted = "In tests, each of these families counts once"
        if not study.design.families:
            counted = "Datasets of one family are not independent evidence, but each counts in tests"
        text += f" {counted}: {'; '.join(map(str, found))}."
    return text


def _arms(study: Findings) -> Table:
    """Describe the arms.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    rows = [
        {
            "solver": name,
            "class": class_words(known.get("target", ""), known.get("params", {})),
            "package": " + ".join(
                dict.fromkeys([known.get("identity", ""), *known.get("space_identities", {}).values()])
            ),
            "fixed": _settings(known.get("params", {})) or "defaults of the class",
            "searched": "; ".join(
                f"{param} ∈ {_searched(values)}" for param, values in known.get("space", {}).items()
            ),
        }
        for name, known in study.design.arms.items()
    ]
    columns: dict[str, Printer] = {
        "Arm": lambda row: row["solver"] or fmt.MISSING,
        "Class": lambda row: row["class"] or fmt.MISSING,
        "Fixed settings": lambda row: row["fixed"],
    }
    spaces = list(dict.fromkeys(row["searched"] for row in rows))
    caption = (
        "Class: the estimator that was trained, for a pipeline its last step. Fixed settings: the parameters "
        "of all trainings of the arm"
    )
    if len(spaces) > 1:
        columns["Searched"] = lambda row: row["searched"] or fmt.MISSING
        caption += f". Searched: the values {_use_of_values(study)}."
    elif spaces and spaces[0]:
        caption += f". For every arm, the values {_use_of_values(study)} are {spaces[0]}."
    else:
        caption += "."
    return print_table(
        "arms", "Arms", pd.DataFrame(rows), columns, caption=caption, text_columns=len(columns)
    )


def _use_of_values(study: Findings) -> str:
    return "from which the inner search selects" if study.design.selects else "that are all trained"


def _searched(values: Any) -> str:
    if not isinstance(values, Mapping):
        return f"{{{', '.join(map(cell, values))}}}"
    kinds = {"log": "logarithmic", "integer": "whole numbers"}
    ends = f"[{cell(values.get('low'))}, {cell(values.get('high'))}]"
    return ", ".join([ends, *(word for key, word in kinds.items() if values.get(key))])


def _settings(params: Mapping[str, Any]) -> str:
    """Print parameters, those of the last step of a pipeline first, without the steps before it.

    Parameters
    ----------
    params : mapping of str to object
        Recorded parameters of an arm.
    """
    *_, last = _steps(params) or [{}]
    own = {name: value for name, value in last.items() if name != TARGET}
    others = {name: value for name, value in params.items() if name not in ("steps", "_args_") or not last}
    return ", ".join(f"{name}={_node_words(value)}" for name, value in (own | others).items())


def class_words(target: str, params: Mapping[str, Any]) -> str:
    """Return the class of an arm; for a pipeline, that of its last step and the names of those before it.

    Parameters
    ----------
    target : str
        Dotted path of the arm's class or function.
    params : mapping of str to object
        Its recorded parameters.

    Returns
    -------
    str
        For example `sklearn.svm.SVC`, or `sklearn.svm.SVC after SimpleImputer, StandardScaler`.
    """
    steps = _steps(params)
    if not steps:
        return target
    before = ", ".join(_short_name(step) for step in steps[:-1])
    return f"{steps[-1][TARGET]}{f' after {before}' if before else ''}"


def _steps(params: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the steps of a pipeline as recorded; empty for any other class.

    Parameters
    ----------
    params : mapping of str to object
        Parameters of an arm: `steps` of a `Pipeline`, or `_args_` of `make_pipeline`.
    """
    named = params.get("steps")
    steps = [each[-1] for each in named if each] if isinstance(named, list) else params.get("_args_")
    if not isinstance(steps, list) or not steps or TARGET not in (steps[-1] or ()):
        return []
    return [each if isinstance(each, Mapping) else {TARGET: str(each)} for each in steps]


def _short_name(node: Mapping[str, Any]) -> str:
    return str(node.get(TARGET)).rpartition(".")[2]


def _node_words(value: Any) -> str:
    """Print a parameter; an estimator in it by the name of its class and its arguments.

    Parameters
    ----------
    value : object
        Recorded value.
    """
    if isinstance(value, Mapping) and TARGET in value:
        arguments = [f"{name}={_node_words(each)}" for name, each in value.items() if name != TARGET]
        return _short_name(value) + (f"({', '.join(arguments)})" if arguments else "")
    if isinstance(value, list) and any(targets_in(value)):
        return f"[{', '.join(map(_node_words, value))}]"
    return cell(value)
