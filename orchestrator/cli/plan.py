"""The verb `plan`."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from orchestrator.analysis.earlier_study import spread_of_earlier
from orchestrator.analysis.pairwise import family_size
from orchestrator.cli.opening import say_meaning
from orchestrator.cli.request import Request
from orchestrator.cli.status import print_lines
from orchestrator.cli.terminal import say
from orchestrator.engine import planning
from orchestrator.engine.acceptance import cost_of_acceptance
from orchestrator.engine.changed_sources import changed_code, changed_contents
from orchestrator.engine.compilation import compile_seconds, seconds_it_took
from orchestrator.engine.load import load_study
from orchestrator.engine.older_trials import counting_older_trials
from orchestrator.engine.preparations import preparation_sentences
from orchestrator.engine.prepare import prepare_study
from orchestrator.engine.probe import probed_seconds
from orchestrator.engine.replay import stored_trials
from orchestrator.engine.superseded import superseded_sentences
from orchestrator.report.power import detectable_difference, detectable_points
from orchestrator.store.store import Store
from orchestrator.study.families import APART, families, n_units
from orchestrator.study.schemes import described
from orchestrator.study.settings import Settings
from orchestrator.study.study import EVERY, SAMPLE, SELECTED
from orchestrator.study.text import format_seconds


def plan(request: Request, console: Console) -> None:
    """Show what a run would do.

    Parameters
    ----------
    request : Request
        Arguments of the command.
    console : Console
        Terminal for the output.
    """
    settings = request.settings()
    say_meaning(request, settings, console)
    store = Store(settings.paths.results / settings.study.name)
    prepared = counting_older_trials(prepare_study(settings), store.provenance())
    trials = store.trials()
    stored = stored_trials(store, settings.study, settings.retry == "failed")
    probed = probed_seconds(prepared, planning.measured_pairs(trials))
    lines = planning.plan(prepared, stored, probed, trials)
    print_lines(f"Plan of {settings.study.name}", lines, console)
    n_inner = [identity.n_inner for identity in prepared.identities.values()]
    uses_inner = settings.study.search.target != SELECTED
    if splitters := described(settings.study.protocol.to_dict(), n_inner, uses_inner):
        say(console, splitters)
    for sentence in preparation_sentences(prepared.preparations):
        say(console, sentence)
    number, seconds = sum(line.left for line in lines), sum(line.seconds_left for line in lines)
    expected = sum(line.expected_left for line in lines)
    is_exact = settings.study.search.target in ("grid", EVERY, SAMPLE, SELECTED)
    most = "," if is_exact or not number else f" at most (about {expected:,.0f} expected), which take"
    left = {line.solver for line in lines if line.left}
    arms = [arm for arm in settings.study.arms if arm.name in left]
    compiling = sum(compile_seconds(arms, settings.cluster, seconds_it_took(trials)).values())
    first = f", plus up to {format_seconds(compiling)} for compilation before" if compiling else ""
    ends = " to ".join(format_seconds(end) for end in planning.interval(lines))
    between = f" (80 %: {ends})" if seconds else ""
    time = f"about {format_seconds(seconds)} of one core{between}{first}"
    say(console, f"{number:,} trainings to run{most} {time}")
    changed = [
        *changed_contents(prepared.datasets, prepared.files, store, prepared.identity_digests()),
        *changed_code(prepared.study.arms, prepared.equivalences, store),
        *cost_of_acceptance(prepared, store),
        *superseded_sentences(prepared, store),
    ]
    for warning in dict.fromkeys([*changed, *prepared.data_warnings, *prepared.table_notes]):
        say(console, warning)
    if power := _power(settings, prepared.datasets):
        say(console, power)


def _power(settings: Settings, described_datasets: Sequence[Mapping[str, Any]]) -> str:
    """Return which differences the report will be able to detect; empty for a single arm, or without tests.

    Parameters
    ----------
    settings : Settings
        Checked configuration.
    described_datasets : sequence of mapping
        Descriptions of the prepared datasets, as a run records them.

    Raises
    ------
    ConfigError
        If the study that `report.earlier` names does not exist or has another metric.
    """
    study, choices = settings.study, settings.report
    if study.search.target == EVERY:  # its report has no tests
        return ""
    n_arms = len([arm for arm in study.arms if arm.name not in choices.leave_out])
    datasets = {each["name"]: each for each in described_datasets if each["name"] not in choices.leave_out}
    merged = [] if choices.families == APART else families(datasets)
    n, unit = n_units(datasets, merged), "family" if merged else "dataset"
    size = family_size(n_arms, study.protocol.profile == "timing", choices.adjustment)
    if not size:
        return ""
    text = detectable_difference(n, size, choices.alpha, unit, choices.adjustment)
    if choices.earlier is None:
        return text
    earlier = load_study(choices.earlier, settings.paths.results)
    arms = [arm.name for arm in study.arms]
    spread = spread_of_earlier(earlier, choices.earlier, study.protocol.metric, arms)
    points = ""
    if spread is not None:
        metric, adjustment = study.protocol.metric, choices.adjustment
        points = detectable_points(n, size, choices.alpha, spread, metric, adjustment)
    return " ".join(filter(None, [text, points]))
