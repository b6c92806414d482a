"""Compare classifiers honestly, from Python.

`compare` takes data and estimators in memory. `run_study` takes the arguments of the command `svmbench run`.
`load_study` reads the tables of a stored study, and `write_report` writes its report.
"""

from __future__ import annotations as _annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from orchestrator import load_study, run_study

if _TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any

    from orchestrator.comparison.result import Comparison
    from orchestrator.store.results import StudyResults

__all__ = ["compare", "load_study", "run_study", "write_report"]


def compare(
    data: Any,
    label: Any = None,
    solvers: Any = None,
    *,
    outer: int | Any = 5,
    inner: int | Any = 5,
    repeats: int = 1,
    seed: int | Sequence[int] = 0,
    metric: str | Any = "accuracy",
    also: Sequence[str | Any] = (),
    search: str | None = None,
    candidates: int | None = None,
    prepare: str | Any = None,
    groups: str | None = None,
    study: str | None = None,
    results: str | Path = "results",
    cluster: str | None = None,
    workers: int | None = None,
    config_dir: str | Path | None = None,
    overrides: Sequence[str] = (),
    progress: bool = True,
) -> Comparison:
    """Compare classifiers by nested cross-validation, and return the answer, tables and final models.

    The comparison is a study like one of the command line: each solver is tuned by inner cross-validation on
    the training rows of each outer split, and is scored on rows that it has never seen.

    Parameters
    ----------
    data : DataFrame, array-like, sparse matrix, tuple, path, str or mapping
        Dataset, or a mapping of names to datasets. A dataset is a frame, features, a tuple `(X, y)` or
        `(frame, column)`, the path of a data file, or the name of a configured dataset such as `"wine"`.
    label : str or array-like, optional
        Column of labels, or the labels themselves. It is left out if the data hold the labels:
        `compare((X, y), solvers)`.
    solvers : list or mapping
        List of names of configured solvers (`svmbench list solvers`), dotted paths of classes, classes and
        estimators; or a mapping of names to estimators, classes, or tuples `(estimator, space)`. A space maps
        parameters, also `step__parameter`, to lists of values or to distributions of SciPy. An estimator
        without a space is not tuned.
    outer, inner : int or splitter, default 5
        Number of stratified outer and inner folds, or a splitter of scikit-learn.
    repeats : int, default 1
        Number of repeats of the outer splits; R is short for the seeds 0 to R - 1.
    seed : int or sequence of int, default 0
        Seed of all splits and of every solver's random state.
    metric : str or callable, default "accuracy"
        Scorer of scikit-learn, or function of true and predicted labels, by which candidates are selected.
    also : sequence of str or callable, default ()
        Further metrics to record.
    search : {"grid", "random", "race", "pattern"}, optional
        Search over the spaces. The default is a grid, or a random search if a space has a distribution or
        `candidates` is given.
    candidates : int, optional
        Number of candidates of a random search. Default 20.
    prepare : {"auto", "none", "minmax", "standard", "table"} or transformer, default "auto"
        What is learnt from the training rows of each split before a solver sees them. "auto" scales numbers
        to [0, 1], and encodes a table with text, dates or gaps. A pipeline gets the features as they are,
        unless this argument is given.
    groups : str, optional
        Column that names the group of each row, such as a patient. It is not a feature. Rows of a group stay
        together in all folds.
    study : str, optional
        Name of the study. With a name, results are kept in the folder `results`, the same call resumes them,
        and every command takes the name. By default they are deleted with the returned object.
    results : path, default "results"
        Folder of studies.
    cluster : {"local", "serial"} or str, optional
        Where trainings run: in worker processes on this host, in this process, or on another configured
        cluster. The default is "local"; it is "serial" in a script that calls `compare` outside
        `if __name__ == "__main__":`, because each worker imports the script.
    workers : int, optional
        Number of worker processes. By default, one for each available core.
    config_dir : path, optional
        Folder of further configurations, laid out like `conf/`.
    overrides : sequence of str, default ()
        Further settings in the grammar of the command line, such as `"protocol.max_seconds=60"`. They have
        precedence over the other arguments. `"dataset.NAME.KEY=VALUE"` sets a key of a dataset: NAME is the
        name of a file without its suffix, the name in a mapping, or `data`.
    progress : bool, default True
        Whether progress is shown.

    Returns
    -------
    Comparison
        Result with `answer`, `scores`, `trials`, `predictions`, `plot()`, `best()` and `report()`.

    Raises
    ------
    ConfigError
        If the comparison cannot be run. The error lists every problem found, and nothing was run.
    StoreError, ExecutionError
        If the store or the cluster cannot be used. Nothing was run.
    StudyStopped, KeyboardInterrupt
        If the run ended before it was complete. With `study`, the same call resumes it.

    Examples
    --------
    >>> import svmbench
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> result = svmbench.compare(X, y, [GaussianNB(), DecisionTreeClassifier()], cluster="serial")
    >>> result.best(solver="GaussianNB").predict(X[:1])
    array([0])
    """
    from orchestrator.execution.main_guard import cluster_of_script, end_if_imported_by_worker

    end_if_imported_by_worker()
    if cluster is None:
        cluster = "local" if workers else cluster_of_script()
    from orchestrator.comparison.compare import compare as compare_datasets

    if solvers is None:
        label, solvers = None, label  # compare(data, solvers)
    return compare_datasets(
        data,
        label,
        solvers,
        protocol={"outer": outer, "inner": inner, "seed": seed, "metric": metric, "also": also},
        repeats=repeats,
        search=search,
        budget=candidates,
        prepare=prepare,
        groups=groups,
        study=study,
        results=results,
        cluster=cluster,
        workers=workers,
        config_dir=config_dir,
        overrides=overrides,
        progress=progress,
    )


def write_report(study: StudyResults | Comparison | str | Path, folder: str | Path | None = None) -> Path:
    """Write the report of a study, and return the path of its page.

    Parameters
    ----------
    study : StudyResults, Comparison, str or Path
        Study, the result of a comparison, or the name or folder of a stored study.
    folder : path, optional
        Folder of the report. By default the folder `report` of the study. A comparison without a name of a
        study needs it.

    Returns
    -------
    Path
        The page `index.html`, beside its tables and figures.

    Raises
    ------
    ConfigError
        If the comparison is not kept and no folder is given.
    StoreError
        If there is no such study, or the folder cannot be written to.
    """
    from pathlib import Path

    from orchestrator.report import write_report as write
    from orchestrator.store.results import StudyResults

    if not isinstance(study, (StudyResults, str, Path)):
        return study.report(folder)
    found = study if isinstance(study, StudyResults) else load_study(study)
    return write(found, found.folder / "report" if folder is None else Path(folder).expanduser())
