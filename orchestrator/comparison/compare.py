"""Comparison of classifiers on data in memory: declare a study, run it, and return its result."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

from orchestrator.comparison.declared import Declared
from orchestrator.comparison.display import make_display
from orchestrator.comparison.python_terms import messages_in_python
from orchestrator.comparison.result import Comparison
from orchestrator.config.objects import NodeWriter, UnwritableError
from orchestrator.engine.edited_sources import require_as_imported
from orchestrator.engine.load import load_study
from orchestrator.engine.run import run
from orchestrator.study.errors import BudgetSpent, ConfigError
from orchestrator.study.settings import Settings
from orchestrator.study.study import EVERY
from orchestrator.study.study_name import name_problem
from orchestrator.study.targets import TARGET
from orchestrator.study.text import shown

TEMPORARY = "comparison"
"""Name of a study that is not kept."""


def compare(
    data: Any,
    label: Any,
    solvers: Any,
    *,
    protocol: Mapping[str, Any],
    repeats: int,
    search: str | None,
    budget: int | None,
    prepare: Any,
    groups: str | None,
    study: str | None,
    results: str | Path,
    cluster: str,
    workers: int | None,
    config_dir: str | Path | None,
    overrides: Sequence[str],
    progress: bool,
) -> Comparison:
    """Compare solvers on datasets; `svmbench.compare` describes the parameters.

    Parameters
    ----------
    data, label, solvers : object
        Datasets, labels and solvers.
    protocol : mapping of str to object
        Keys of `protocol` and their values.
    repeats : int
        Number of repeats of the outer splits.
    search : str or None
        Name of the search.
    budget : int or None
        Number of candidates of a random search.
    prepare : object
        Preparation of features; None for that of the protocol.
    groups : str or None
        Column of groups.
    study : str or None
        Name of the study.
    results : path
        Folder of studies.
    cluster : str
        Where trainings run.
    workers : int or None
        Number of worker processes.
    config_dir : path or None
        The user's folder of configurations.
    overrides : sequence of str
        Further overrides.
    progress : bool
        Whether progress is shown.

    Returns
    -------
    Comparison
        The result.
    """
    if study is not None and (problem := name_problem(study)):
        raise ConfigError([problem])
    with messages_in_python(), _folder_of_studies(study, results) as studies:
        name = TEMPORARY if study is None else str(study)
        declared = Declared(studies / name)
        declared.add_data(data, label, groups)
        declared.add_solvers(solvers, prepared=prepare is not None)
        if prepare is not None:
            protocol = {**protocol, "prepare": prepare}
        values = _values(declared, protocol, repeats, search, budget, cluster, workers)
        values |= {"study": name, "paths.results": str(studies)}
        if study is None:
            values["paths.cache"] = str(studies / "cache")
        folder = None if config_dir is None else Path(config_dir)
        overrides = declared.set_parameters([overrides] if isinstance(overrides, str) else overrides)
        settings = declared.settings(values, overrides, folder)
        require_as_imported(settings.study)
        declared.write()
        command = declared.command(values, overrides, folder)
        _run(settings, command, progress)
        return Comparison(
            load_study(name, studies),
            settings.paths.cache,
            delete=studies if study is None else None,
            durations=declared.durations,
            float_labels=declared.float_labels,
        )


def _run(settings: Settings, command: list[str], progress: bool) -> None:
    """Run a study to its end, or to the end of its budget of time (`minutes`).

    Parameters
    ----------
    settings : Settings
        Checked settings.
    command : list of str
        Command that continues the study, for its provenance.
    progress : bool
        Whether progress is shown.
    """
    with suppress(BudgetSpent):  # the answer says that the budget ended the run
        run(settings, make_display(progress), command, lambda results: False)


@contextmanager
def _folder_of_studies(study: str | None, results: str | Path) -> Iterator[Path]:
    """Yield the folder of studies, and remove the files of a comparison that cannot be run.

    A `ConfigError` removes a study that did not exist before. Any error removes a temporary folder.

    Parameters
    ----------
    study : str or None
        Name of the study. None for a temporary folder, which remains only if the block does not raise.
    results : path
        Folder of studies that are kept.

    Yields
    ------
    Path
        The folder.
    """
    if study is None:
        folder = Path(tempfile.mkdtemp(prefix="svmbench-")).resolve()
        new = folder
    else:
        folder = Path(results).expanduser().absolute()
        new = folder / str(study)
    is_new = study is None or not new.exists()
    try:
        yield folder
    except ConfigError:
        if is_new:
            shutil.rmtree(new, ignore_errors=True)
        raise
    except BaseException:
        if study is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _values(
    declared: Declared,
    protocol: Mapping[str, Any],
    repeats: int,
    search: str | None,
    budget: int | None,
    cluster: str,
    workers: int | None,
) -> dict[str, Any]:
    """Return the values of configuration keys that the arguments stand for.

    Parameters
    ----------
    declared : Declared
        Declaration, to which problems are added.
    protocol : mapping of str to object
        Keys of `protocol` and their values.
    repeats : int
        Number of repeats of the outer splits.
    search : str or None
        Name of the search; None for a grid, or a random search if `budget` is given or a space has a range.
    budget : int or None
        Number of candidates of a random search.
    cluster : str
        Where trainings run.
    workers : int or None
        Number of worker processes.
    """
    if search == EVERY:
        declared.problems.append(
            f"search={EVERY!r} selects no candidates, so it gives no scores to compare. Run it with "
            "svmbench.run_study, or use search='grid'"
        )
    draws = budget is not None or declared.has_ranges()
    values: dict[str, Any] = {"search": search or ("random" if draws else "grid")}
    for key, value in protocol.items():
        try:
            values[f"protocol.{key}"] = _protocol_value(declared.writer, key, value)
        except UnwritableError as error:
            declared.problems.append(f"{key}: {error}")
    if repeats != 1:
        values["protocol.repeats"] = repeats
    if budget is not None:
        values["search.budget"] = budget
    values["protocol.predictions"] = "outer"
    values["cluster"] = cluster
    if workers is not None:
        values["cluster.workers"] = workers
    return values


def _protocol_value(writer: NodeWriter, key: str, value: Any) -> Any:
    """Return the value of a key of `protocol`.

    Parameters
    ----------
    writer : NodeWriter
        Writes splitters and functions.
    key : str
        Key.
    value : object
        Value as the caller gave it.
    """
    if key == "metric" and callable(value) and hasattr(value, "__name__"):
        return writer.path(value)
    if key == "prepare" and isinstance(value, type):
        return {TARGET: writer.path(value)}
    if key in ("outer", "inner") and isinstance(value, type):
        raise UnwritableError(
            f"expected a splitter, found its class {value.__name__}; write {value.__name__}()"
        )
    if key in ("outer", "inner") and isinstance(value, (RepeatedKFold, RepeatedStratifiedKFold)):
        kind = type(value).__name__.removeprefix("Repeated")
        raise UnwritableError(f"{shown(value)} cannot be used; write {key}={kind}(…) and repeats=R")
    if key == "also":
        if value is None:
            return []
        if isinstance(value, str) or callable(value):
            value = [value]
        return [_protocol_value(writer, "metric", each) for each in value]
    if isinstance(value, tuple):
        return list(value)
    return writer.value(value)
