"""Make a checked study ready to run: load and fold its data, and give every dataset × arm its identity."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse

from orchestrator.datasets.child_process import ProcessEnded
from orchestrator.datasets.dataset import Dataset, DatasetError
from orchestrator.engine.cost_model import Shape
from orchestrator.engine.feasibility import infeasible
from orchestrator.search.fold_search import planned_trials
from orchestrator.study.batch import DataSource
from orchestrator.study.errors import ConfigError
from orchestrator.study.settings import Settings
from orchestrator.study.study import Arm, Protocol, Study
from orchestrator.study.trials import Identity, Pair
from orchestrator.training.class_checks import answers
from orchestrator.training.estimators import takes_shared_gram
from orchestrator.training.gram import MOST_ROWS, memory_for_gram
from orchestrator.training.metrics import takes_features
from orchestrator.training.split_data import prepare_data


@dataclass(frozen=True)
class PreparedStudy:
    """A study whose data is ready.

    Attributes
    ----------
    study : Study
    sources : mapping of str to DataSource
        By dataset.
    shapes : mapping of str to Shape
        By dataset.
    identities : mapping of (dataset, arm) to Identity
    datasets : list of dict
        What provenance records about the datasets.
    gram_memory : float
        What the Gram matrices of a split may take on a worker, in bytes; no number depends on it.
    """

    study: Study
    sources: Mapping[str, DataSource]
    shapes: Mapping[str, Shape]
    identities: Mapping[Pair, Identity]
    datasets: list[dict[str, Any]]
    gram_memory: float = math.inf

    def planned_trials(self) -> dict[Pair, int]:
        """Return the number of trials of each dataset × arm whose search evaluates all that it may."""
        return {
            pair: planned_trials(identity, self.study.search) for pair, identity in self.identities.items()
        }

    def outer_folds(self) -> range:
        """Return the outer folds that are run: all of them."""
        return range(self.study.protocol.outer)

    def declaration(self) -> dict[str, Any]:
        """Return what a run records of the study that it declares; see `current_declaration`."""
        study = self.study
        identities = {pair: identity.digest for pair, identity in self.identities.items()}
        shared_gram = {pair: identity.shared_gram for pair, identity in self.identities.items()}
        return {
            "study": {
                "name": study.name,
                "datasets": self.datasets,
                "arms": [asdict(arm) for arm in study.arms],
                "search": study.search.facts(),
                "protocol": study.protocol.facts(),
            },
            "identities": _nested(identities),
            "shared_gram": _nested(shared_gram),
            "planned": _nested(self.planned_trials()),
        }


def _nested(values: Mapping[Pair, Any]) -> dict[str, dict[str, Any]]:
    """Return values by dataset, then by arm."""
    nested: dict[str, dict[str, Any]] = {}
    for (dataset, arm), value in values.items():
        nested.setdefault(dataset, {})[arm] = value
    return nested


def prepare_study(settings: Settings) -> PreparedStudy:
    """Load every dataset, leave it where workers can map it, and compute the study's identities.

    Raises
    ------
    ConfigError
        With the problem of each dataset that cannot be used.
    """
    study = settings.study
    loaded: dict[str, tuple[DataSource, Dataset]] = {}
    problems = []
    for spec in study.datasets:
        try:
            loaded[spec.name] = prepare_data(spec, study.protocol, settings.paths.cache, settings.data_memory)
        except (DatasetError, OSError) as error:
            problems.append(str(error))
    problems += _same_content(loaded)
    problems += infeasible(study, {name: dataset for name, (_, dataset) in loaded.items()})
    if problems:
        raise ConfigError(problems)
    shared_gram = _shared_gram(study, {name: dataset for name, (_, dataset) in loaded.items()})
    identities = {
        (name, arm.name): Identity(
            name,
            source.fingerprint,
            source.split_hash,
            arm,
            study.protocol,
            shared_gram=shared_gram[name, arm.name],
        )
        for (name, (source, _)), arm in itertools.product(loaded.items(), study.arms)
    }
    return PreparedStudy(
        study,
        sources={name: source for name, (source, _) in loaded.items()},
        shapes={name: _shape(dataset) for name, (_, dataset) in loaded.items()},
        identities=identities,
        datasets=[_facts(*loaded[spec.name]) for spec in study.datasets],
        gram_memory=memory_for_gram(settings.cluster.memory),
    )


def _shared_gram(study: Study, datasets: Mapping[str, Dataset]) -> dict[Pair, bool]:
    """Return which dataset × arm shares Gram matrices.

    Raises
    ------
    ConfigError
        With the problem of each solver that ends its process, or never answers, when it is asked.
    """
    pairs = list(itertools.product(datasets.items(), study.arms))
    found = answers(
        lambda pair: _shares_gram(pair[1], pair[0][1], study.protocol),
        [(arm.target, (dataset, arm)) for dataset, arm in pairs],
    )
    problems = [
        f"solver {arm.solver}: {arm.target} {answer.reason} when it was asked whether it takes shared kernel "
        "matrices (prefers_gram); correct it"
        for (_, arm), answer in zip(pairs, found, strict=True)
        if isinstance(answer, ProcessEnded)
    ]
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))
    return {(name, arm.name): answer is True for ((name, _), arm), answer in zip(pairs, found, strict=True)}


def _shares_gram(arm: Arm, dataset: Dataset, protocol: Protocol) -> bool:
    """Decide by what is in a trial's key alone, for shared matrices are rounded."""
    n, d = dataset.X.shape
    if protocol.profile != "throughput" or n > MOST_ROWS or any(map(takes_features, protocol.own_metrics)):
        return False
    return takes_shared_gram(arm, n, d)


def _shape(dataset: Dataset) -> Shape:
    n, d = dataset.X.shape
    return Shape(n, d, len(dataset.classes))


def _same_content(loaded: dict[str, tuple[DataSource, Dataset]]) -> list[str]:
    """Find datasets that are one and the same: they would count twice as evidence."""
    names: dict[str, list[str]] = {}
    for name, (source, _) in loaded.items():
        names.setdefault(source.fingerprint, []).append(name)
    return [
        f"datasets {first} and {second} have the same content; keep one of them"
        for same in names.values()
        for first, second in itertools.combinations(same, 2)
    ]


def _facts(source: DataSource, dataset: Dataset) -> dict[str, Any]:
    n, d = dataset.X.shape
    stored = dataset.X.nnz if scipy.sparse.issparse(dataset.X) else int(np.count_nonzero(dataset.X))
    counts = np.bincount(dataset.codes, minlength=len(dataset.classes))
    return {
        "name": source.spec.name,
        "n": n,
        "d": d,
        "classes": len(dataset.classes),
        "class_counts": {
            str(label): int(count) for label, count in zip(dataset.classes.tolist(), counts, strict=True)
        },
        "density": stored / (n * d),
        "fingerprint": dataset.fingerprint,
        "split_hash": source.split_hash,
        "target": source.spec.target,
    }
