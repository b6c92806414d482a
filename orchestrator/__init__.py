"""Distributed nested cross-validation: declares, schedules, stores and reports comparisons of classifiers."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["load_study", "run_study"]

if TYPE_CHECKING:
    from orchestrator.store.results import StudyResults


# Both import what they need when they are called, so that the package itself imports at once.


def load_study(name: str | Path, results: str | Path = "results") -> "StudyResults":
    """Read a study's tables.

    Parameters
    ----------
    name : str or Path
        The study's name, or the path of its folder.
    results : path
        The folder of studies, `paths.results`, in which a name is looked up.

    Returns
    -------
    StudyResults
        With the frames `trials`, `selections` and `outer`, and the runs' `provenance`.

    Raises
    ------
    StoreError
        When there is no such study, or a newer version of svmbench wrote it.
    """
    from orchestrator.engine import load

    return load.load_study(name, results)


def run_study(*overrides: str, config_dir: str | Path | None = None, client: Any = None) -> "StudyResults":
    """Run a study to its end, or go on with it, and return its tables; `svmbench run` from Python.

    Parameters
    ----------
    *overrides : str
        In Hydra's grammar, as on the command line: `"experiment=quickstart"`, `"cluster=serial"`.
    config_dir : path, optional
        A folder with further configurations, laid out like `conf/`.
    client : distributed.Client, optional
        Run on the workers of its scheduler, which have to be processes with the client's software. Trainings
        of one process take turns, so that a second thread makes none faster. Of `cluster` only `memory`,
        `give_up`, `no_workers_timeout` and `performance_report` have an effect then.

    Returns
    -------
    StudyResults
        As of `load_study`.

    Raises
    ------
    ConfigError
        When the configuration cannot be run, with every problem found; nothing was run.
    StoreError, ExecutionError
        When the store or the cluster cannot be used at all; nothing was run.
    TypeError
        When `client` is none of Dask's.
    StudyStopped, KeyboardInterrupt
        When the run ended before the study did; the same call resumes it.
    """
    from orchestrator.execution.main_guard import end_if_imported_by_worker

    end_if_imported_by_worker()
    from orchestrator.analysis.findings import is_decided
    from orchestrator.config.compose import load_settings
    from orchestrator.engine.edited_sources import require_as_imported
    from orchestrator.engine.line_display import LineDisplay
    from orchestrator.engine.run import run

    folder = None if config_dir is None else Path(config_dir)
    command = ["svmbench", "run", *overrides, *([] if folder is None else ["--config-dir", str(folder)])]
    if client is None:
        settings = load_settings(overrides, folder)
    else:
        from orchestrator.execution.clusters.address import require_usable  # imports Dask

        require_usable(client)
        settings = load_settings([*overrides, "cluster.kind=local"], folder)  # which needs no other setting
        settings = replace(settings, cluster=replace(settings.cluster, kind="address"))
    require_as_imported(settings.study)
    run(settings, LineDisplay(), command, is_decided, client)
    return load_study(settings.study.name, settings.paths.results)
