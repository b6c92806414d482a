"""Build the final estimator of a finished study: repeat its hyper-parameter search on all rows."""

from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.pipeline import make_pipeline

from orchestrator.datasets.prepared import find_prepared, open_prepared
from orchestrator.engine.declared_pair import declared_pair
from orchestrator.resampling.nested import Samples, splits_of_all_rows
from orchestrator.search.fold_search import FoldSearch
from orchestrator.store.files import StoreError
from orchestrator.store.results import StudyResults
from orchestrator.study.declaration import Declaration
from orchestrator.study.failures import Failure, lines_of
from orchestrator.study.study import EVERY, SAMPLE, DatasetSpec
from orchestrator.study.trials import REFIT, Batch, DataSource, Identity, WorkOrder
from orchestrator.study.trials import Path as TrialPath
from orchestrator.training.environment import cache_folder
from orchestrator.training.estimators import make_estimator
from orchestrator.training.gram import memory_for_gram
from orchestrator.training.preparation import preparation_steps
from orchestrator.training.run_batch import run_batch
from orchestrator.training.split_data import preparation_seed


def final_estimator(results: StudyResults, dataset: str, arm: str, cache: Path | None = None) -> Any:
    """Return the unfitted estimator that the study's search selects on all rows.

    Parameters
    ----------
    results : StudyResults
        The results of a finished study.
    dataset : str
        Name of the dataset.
    arm : str
        Name of the arm.
    cache : Path, optional
        Folder of prepared datasets. By default, the cache folder of this user.

    Returns
    -------
    object
        A scikit-learn estimator with the selected hyper-parameters. It is a pipeline with the preparation of
        the features, unless the preparation is `none`.

    Raises
    ------
    StoreError
        If the study does not declare this arm on this dataset, it selects no candidate, it measures a sample
        of another study, its inner resampling cannot split all rows, or no candidate has a score on every
        inner split.
    """
    declaration, nested = declared_pair(results, dataset, arm)
    if declaration.search.target == SAMPLE:
        source_study = declaration.search.options["study"]
        raise StoreError(
            f"study {results.name!r} measures a sample of study {source_study!r} and has no search of its "
            f"own. Make the model from study {source_study!r}"
        )
    if declaration.search.target == EVERY:
        raise StoreError(
            f"study {results.name!r} trains every candidate with search={EVERY} and selects none. Make the "
            "model from a study with another search, such as search=grid"
        )
    folder = _prepared_folder(declaration, dataset, cache)
    data = open_prepared(folder)
    try:
        splits = splits_of_all_rows(Samples(data.X, data.y, data.metadata), nested.protocol)
    except ValueError as error:
        raise StoreError(
            f"study {results.name!r}: its inner resampling cannot split all rows of {dataset!r}: {error}"
        ) from error
    splits.save(folder)
    identity = Identity(
        dataset,
        data.fingerprint,
        splits.hash,
        nested.arm,
        nested.protocol,
        shared_gram=nested.shared_gram,
        n_inner=splits.n_inner,
    )
    source = DataSource(DatasetSpec(dataset, ""), data.fingerprint, splits.hash, str(folder))
    refit = _selected(FoldSearch(identity, declaration.search, 0), source)
    protocol = identity.protocol
    cold_arm = replace(identity.arm, warm_starts=False)  # warm starts only help the trainings of a path
    estimator = make_estimator(cold_arm, protocol, refit.candidates[0], refit.seed)
    steps = preparation_steps(protocol.preparation, data.X, preparation_seed(source, protocol, 0, REFIT))
    return make_pipeline(*steps, estimator) if steps else estimator


def fitted_estimator(
    results: StudyResults,
    dataset: str,
    arm: str,
    cache: Path | None = None,
    label_type: type[np.float64] | None = None,
) -> Any:
    """Return the estimator of `final_estimator`, fitted on all rows.

    Parameters
    ----------
    results : StudyResults
        The results of a finished study.
    dataset : str
        Name of the dataset.
    arm : str
        Name of the arm.
    cache : Path, optional
        Folder of prepared datasets. By default, the cache folder of this user.
    label_type : type, optional
        Type of the labels that the estimator predicts. By default, that of the prepared dataset.

    Returns
    -------
    object
        Fitted estimator. It is fitted on a data frame if the columns of the dataset have names.

    Raises
    ------
    StoreError
        If the study does not declare this arm on this dataset, or no candidate can be selected.
    """
    estimator = final_estimator(results, dataset, arm, cache)
    declaration, _ = declared_pair(results, dataset, arm)
    data = open_prepared(_prepared_folder(declaration, dataset, cache))
    X = data.X
    if isinstance(X, np.ndarray):  # a copy, because some classes refuse read-only memory
        X = pd.DataFrame(np.array(X), columns=list(data.columns)) if data.columns else np.array(X)
    elif scipy.sparse.issparse(X):
        X = X.copy()
    return estimator.fit(X, np.array(data.y, dtype=label_type))


def _prepared_folder(declaration: Declaration, dataset: str, cache: Path | None) -> Path:
    """Return the folder of the prepared copy of a declared dataset.

    Parameters
    ----------
    declaration : Declaration
        The current declaration of the study.
    dataset : str
        Name of the dataset.
    cache : Path or None
        Folder of prepared datasets. None means the cache folder of this user.
    """
    fingerprint = str(declaration.datasets[dataset]["fingerprint"])
    return find_prepared(cache or cache_folder(), dataset, fingerprint)


def _selected(search: FoldSearch, source: DataSource) -> TrialPath:
    """Follow a search over the inner splits and return the refit that it asks for.

    Parameters
    ----------
    search : FoldSearch
        The search, with the inner splits of all rows. It receives the score of every trial.
    source : DataSource
        The prepared dataset on which the trials train.

    Returns
    -------
    TrialPath
        The refit of the selected candidate.

    Raises
    ------
    StoreError
        If no candidate has a score on every inner split.
    """
    identity = search.identity
    failures: list[Failure] = []
    while paths := search.ask():
        if paths[-1].inner == REFIT:
            return paths[-1]
        order = WorkOrder(
            study="",
            run_id="",
            source=source,
            arm=identity.arm,
            identity=identity.digest,
            shared_gram=identity.shared_gram,
            protocol=identity.protocol,
            batch=Batch(0, *search.pair, tuple(paths), attempt=1, base_seconds=0.0),
            gram_memory=memory_for_gram(None),
        )
        trials = [(path, candidate) for path in paths for candidate in path.candidates]
        records = run_batch(order).records
        for index, ((path, candidate), (status, score)) in enumerate(
            zip(trials, records.outcomes(), strict=True)
        ):
            search.tell(candidate, path.inner, status, nan if score is None else score)
            if score is None:
                failures.append(Failure(*search.pair, status, str(records.row(index)["message"]), 1))
    raise StoreError(
        "no candidate has a score on every inner split of all rows, so none can be selected: "
        + ("; ".join(lines_of(failures)) or "the search proposed no candidate")
    )
