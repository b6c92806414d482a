"""Train a stored refit again, to look at its model: stores keep numbers of trainings, and no models."""

from dataclasses import replace
from pathlib import Path

from orchestrator.datasets.prepared import find_prepared
from orchestrator.engine.declared_pair import declared_pair
from orchestrator.engine.replay import replay
from orchestrator.search.fold_search import FoldSearch
from orchestrator.store.files import StoreError
from orchestrator.store.results import Refit, StudyResults
from orchestrator.store.store import Store
from orchestrator.study.declaration import Declaration
from orchestrator.study.records import StoredTrial
from orchestrator.study.study import EVERY, DatasetSpec
from orchestrator.study.trials import REFIT, DataSource, Identity
from orchestrator.study.trials import Path as TrialPath
from orchestrator.training.environment import cache_folder
from orchestrator.training.estimators import make_estimator
from orchestrator.training.metrics import scorer
from orchestrator.training.open_data import open_copy
from orchestrator.training.split_data import preparation_seed, prepared_split


def train_refit_again(
    results: StudyResults, dataset: str, arm: str, outer: int = 0, cache: Path | None = None
) -> Refit:
    """Train the candidate that an outer fold has selected again, on the training rows of the fold.

    Parameters
    ----------
    results : StudyResults
        The results of a study in which this refit is stored.
    dataset : str
        Name of the dataset.
    arm : str
        Name of the arm.
    outer : int, default 0
        Index of the outer fold.
    cache : Path, optional
        Folder of prepared datasets. By default, the cache folder of this user.

    Returns
    -------
    Refit
        The fitted estimator, the prepared rows of the fold, and its score beside the stored one.

    Raises
    ------
    StoreError
        If no refit of this dataset, arm and outer fold is stored, or the study selects no candidate.
    DatasetError
        If the dataset or its splits are not in the cache.
    """
    declaration, identity = declared_pair(results, dataset, arm)
    if declaration.search.target == EVERY:
        raise StoreError(
            f"study {results.name!r} trains every candidate with search={EVERY} and selects none, so it "
            "has no refits. Choose a study with another search, such as search=grid"
        )
    path, stored = _stored_refit(results, declaration, identity, outer)
    folder = find_prepared(cache or cache_folder(), dataset, identity.fingerprint)
    source = DataSource(DatasetSpec(dataset, ""), identity.fingerprint, identity.split_hash, str(folder))
    protocol = identity.protocol
    data, folds = open_copy(folder, source)
    seed = preparation_seed(source, protocol, outer, REFIT)
    split = prepared_split(data, *folds.train_test(outer, REFIT), protocol.preparation, seed)
    cold_arm = replace(identity.arm, warm_starts=False)  # a refit has no training before it on its path
    estimator = make_estimator(cold_arm, protocol, path.candidates[0], path.seed)
    X_train, y_train, X_test, y_test = (  # copies, because some classes refuse read-only memory
        values.copy() for values in (split.X_train, split.y_train, split.X_test, split.y_test)
    )
    estimator.fit(X_train, y_train)
    score = float(scorer(protocol.metric)(estimator, X_test, y_test))
    params = dict(path.candidates[0].params)
    return Refit(estimator, params, X_train, y_train, X_test, y_test, score, stored)


def _stored_refit(
    results: StudyResults, declaration: Declaration, identity: Identity, outer: int
) -> tuple[TrialPath, float]:
    """Return the refit that the search of an outer fold asks for, and its stored score.

    Parameters
    ----------
    results : StudyResults
        The results of the study.
    declaration : Declaration
        Its current declaration.
    identity : Identity
        The dataset × arm.
    outer : int
        Index of the outer fold.

    Raises
    ------
    StoreError
        If the refit is not stored, or has no score.
    """
    trials = results.trials
    rows = zip(trials["key"], trials["status"], trials["score"], strict=True)
    stored = {key: StoredTrial(status, score) for key, status, score in rows}
    if 0 <= outer < len(identity.n_inner):
        records = Store(results.folder).search_records.read
        for found in replay(FoldSearch(identity, declaration.search, outer, records), stored):
            if found.path.inner == REFIT and found.stored:
                trial = stored[found.stored[0]]
                if trial.scored:
                    return found.path, trial.score
    raise StoreError(
        f"study {results.name!r} has no refit with a score of arm {identity.arm.name!r} on dataset "
        f"{identity.dataset!r} in outer fold {outer}; its {len(identity.n_inner)} folds are counted from 0. "
        "Choose another fold, or resume the study"
    )
