"""Make a checked study ready to run: load and fold its data, and give every dataset × arm its identity."""

import itertools
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse

from orchestrator.datasets import Dataset, DatasetError
from orchestrator.estimators import takes_shared_gram
from orchestrator.feasibility import infeasible
from orchestrator.gram import MOST_ROWS, memory_for_gram
from orchestrator.runner import Prepared
from orchestrator.scheduling import Shape
from orchestrator.settings import ConfigError, Settings
from orchestrator.sources import DataSource, prepare_source
from orchestrator.study import Arm, Identity, Protocol


@dataclass(frozen=True)
class PreparedStudy:
    """A study that can run, and the facts about its datasets for the provenance."""

    prepared: Prepared
    datasets: list[dict[str, Any]]

    def declaration(self) -> dict[str, Any]:
        """Return what a run records of the study that it declares; see `current_declaration`."""
        study = self.prepared.study
        identities: dict[str, dict[str, str]] = {}
        shared_gram: dict[str, dict[str, bool]] = {}
        planned: dict[str, dict[str, int]] = {}
        for (dataset, arm), identity in self.prepared.identities.items():
            identities.setdefault(dataset, {})[arm] = identity.digest
            shared_gram.setdefault(dataset, {})[arm] = identity.shared_gram
            planned.setdefault(dataset, {})[arm] = self.prepared.planned_trials((dataset, arm))
        return {
            "study": {
                "name": study.name,
                "datasets": self.datasets,
                "arms": [asdict(arm) for arm in study.arms],
                "search": study.search,
                "protocol": asdict(study.protocol),
            },
            "identities": identities,
            "shared_gram": shared_gram,
            "planned": planned,
        }


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
            loaded[spec.name] = prepare_source(
                spec, study.protocol, settings.paths.cache, settings.data_memory
            )
        except (DatasetError, OSError) as error:
            problems.append(str(error))
    problems += _same_content(loaded)
    problems += infeasible(study, {name: dataset for name, (_, dataset) in loaded.items()})
    if problems:
        raise ConfigError(problems)
    identities = {
        (name, arm.name): Identity(
            name,
            source.fingerprint,
            source.split_hash,
            arm,
            study.protocol,
            shared_gram=_shares_gram(arm, dataset, study.protocol),
        )
        for (name, (source, dataset)), arm in itertools.product(loaded.items(), study.arms)
    }
    shapes = {
        name: Shape(n=dataset.X.shape[0], d=dataset.X.shape[1], classes=len(dataset.classes))
        for name, (_, dataset) in loaded.items()
    }
    sources = {name: source for name, (source, _) in loaded.items()}
    memory = memory_for_gram(settings.cluster.memory)
    facts = [_facts(*loaded[spec.name]) for spec in study.datasets]
    return PreparedStudy(Prepared(study, sources, shapes, identities, memory), facts)


def _shares_gram(arm: Arm, dataset: Dataset, protocol: Protocol) -> bool:
    """Decide by what is in a trial's key alone, for shared matrices are rounded."""
    n, d = dataset.X.shape
    return protocol.profile == "throughput" and n <= MOST_ROWS and takes_shared_gram(arm, n, d)


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
