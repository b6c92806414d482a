"""Make a checked study ready to run: load and fold its data, and give every dataset × arm its identity."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from orchestrator.datasets.about import path_at_hand
from orchestrator.datasets.audit import Audit
from orchestrator.datasets.dataset import Dataset, DatasetError
from orchestrator.datasets.families import Relation, relations
from orchestrator.datasets.findings import kept_audit
from orchestrator.engine.changed_sources import file_stamp
from orchestrator.engine.cost_model import Shape
from orchestrator.engine.feasibility import infeasible, without_value
from orchestrator.engine.selected_by import with_selected
from orchestrator.isolation.child_process import ProcessEnded
from orchestrator.isolation.class_checks import ask_classes
from orchestrator.resampling.splits import Splits
from orchestrator.search.fold_search import planned_trials
from orchestrator.study.batch import DataSource
from orchestrator.study.errors import ConfigError
from orchestrator.study.families import Family, families
from orchestrator.study.settings import MOST_TRAININGS, Settings
from orchestrator.study.study import Arm, DatasetSpec, Protocol, Study
from orchestrator.study.trials import Identity, Pair
from orchestrator.study.values import is_number
from orchestrator.training.estimators import takes_shared_gram
from orchestrator.training.gram import MAX_ROWS, memory_for_gram
from orchestrator.training.metrics import takes_features
from orchestrator.training.split_data import prepare_data

NAMED = 3
"""Datasets or families that one sentence tells in full."""


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
    data_warnings : list of str
        What makes their scores look better, or their number larger, than they are.
    gram_memory : float
        What the Gram matrices of a split may take on a worker, in bytes; no number depends on it.
    files : mapping of str to dict
        The stamp of the file that a dataset was read from, taken before; see `changed_sources`.
    """

    study: Study
    sources: Mapping[str, DataSource]
    shapes: Mapping[str, Shape]
    identities: Mapping[Pair, Identity]
    datasets: list[dict[str, Any]]
    data_warnings: list[str] = field(default_factory=list)
    gram_memory: float = math.inf
    files: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    def planned_trials(self) -> dict[Pair, int]:
        """Return the number of trials of each dataset × arm whose search evaluates all that it may."""
        return {
            pair: planned_trials(identity, self.study.search) for pair, identity in self.identities.items()
        }

    def outer_folds(self, pair: Pair) -> range:
        """Return the outer splits of a dataset × arm that are run: all of them."""
        return range(len(self.identities[pair].n_inner))

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


def _named_datasets(names: Sequence[str]) -> str:
    """Name the datasets that a problem is of, or some of many."""
    if len(names) == 1:
        return f"dataset {names[0]!r}"
    some, more = names[:NAMED], len(names) - NAMED
    return f"datasets {', '.join(map(repr, some))}{f' and {more} more' if more > 0 else ''}"


def _on_families(found: Sequence[Family]) -> list[str]:
    """Say which datasets count once in a test; of many families, which ones there are."""
    counted = "counted once in a test unless report.families=apart"
    if len(found) <= NAMED:
        return [f"{family}: one family, {counted}" for family in found]
    sizes = (f"{family.name.removeprefix('family ')} ({len(family.datasets)})" for family in found)
    return [f"{len(found)} families of several datasets, each {counted}: {', '.join(sizes)}"]


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
    loaded: dict[str, tuple[DataSource, Dataset, Splits]] = {}
    unusable: dict[str, list[str]] = {}
    files = _files(study)
    for spec in study.datasets:
        try:
            loaded[spec.name] = prepare_data(spec, study.protocol, settings.paths.cache, settings.data_memory)
        except (DatasetError, OSError) as error:
            problem = str(error).removeprefix(f"dataset {spec.name!r}: ")
            unusable.setdefault(problem, []).append(spec.name)
    problems = [f"{_named_datasets(names)}: {problem}" for problem, names in unusable.items()]
    problems += _same_content(loaded)
    if not problems:
        fingerprints = {name: source.fingerprint for name, (source, _, _) in loaded.items()}
        study = with_selected(study, fingerprints, settings.paths.results)
    problems += infeasible(study, {name: dataset for name, (_, dataset, _) in loaded.items()})
    for name, (_, dataset, splits) in loaded.items():
        problems += without_value(study.protocol, name, dataset, splits)
    if problems:
        raise ConfigError(problems)
    shared_gram = _shared_gram(study, {name: dataset for name, (_, dataset, _) in loaded.items()})
    identities = {
        (name, arm.name): Identity(
            name,
            source.fingerprint,
            source.split_hash,
            arm,
            study.protocol,
            shared_gram=shared_gram[name, arm.name],
            n_inner=splits.n_inner,
        )
        for (name, (source, _, splits)), arm in itertools.product(loaded.items(), study.arms)
    }
    number = sum(planned_trials(identity, study.search) for identity in identities.values())
    if number > MOST_TRAININGS:
        raise ConfigError(
            [
                f"the study asks for {number:.3g} trainings; expected at most {MOST_TRAININGS:,}: "
                "make fewer splits, or use fewer values, solvers or datasets"
            ]
        )
    audits = {name: _audit(*each) for name, each in loaded.items()}
    related = relations(
        {name: dataset.X for name, (_, dataset, _) in loaded.items()},
        {spec.name: spec.family for spec in study.datasets},
        {name: Path(source.folder) for name, (source, _, _) in loaded.items()},
    )
    facts = [
        _facts(*loaded[spec.name])
        | _audited(spec, audits[spec.name], loaded[spec.name][1].n_dropped, related)
        for spec in study.datasets
    ]
    return PreparedStudy(
        study,
        sources={name: source for name, (source, _, _) in loaded.items()},
        shapes={name: _shape(dataset, splits) for name, (_, dataset, splits) in loaded.items()},
        identities=identities,
        datasets=facts,
        data_warnings=[
            *(text for name, found in audits.items() for text in found.warnings(loaded[name][1])),
            *_on_families(families({each["name"]: each for each in facts})),
        ],
        gram_memory=memory_for_gram(settings.cluster.memory),
        files=files,
    )


def _files(study: Study) -> dict[str, dict[str, Any]]:
    """Return the stamp of the file of each dataset that is read from one."""
    paths = {spec.name: path_at_hand({"_target_": spec.target, **spec.params}) for spec in study.datasets}
    stamps = {name: file_stamp(path) for name, path in paths.items() if path is not None}
    return {name: stamp for name, stamp in stamps.items() if stamp is not None}


def _shared_gram(study: Study, datasets: Mapping[str, Dataset]) -> dict[Pair, bool]:
    """Return which dataset × arm shares Gram matrices.

    Raises
    ------
    ConfigError
        With the problem of each solver that ends its process, or never answers, when it is asked.
    """
    pairs = list(itertools.product(datasets.items(), study.arms))
    found = ask_classes(
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
    if protocol.profile != "throughput" or n > MAX_ROWS or not dataset.is_plain:
        return False
    if any(map(takes_features, protocol.own_metrics)):
        return False
    return takes_shared_gram(arm, n, d)


def _shape(dataset: Dataset, splits: Splits) -> Shape:
    n, d = dataset.X.shape
    shares = (
        np.mean([len(splits.train_test(*split)[0]) for split in splits.of_level(refits)]) / n
        for refits in (True, False)
    )
    return Shape(n, d, len(dataset.classes), *map(float, shares))


def _same_content(loaded: Mapping[str, tuple[DataSource, Dataset, Splits]]) -> list[str]:
    """Find datasets that are one and the same: they would count twice as evidence."""
    names: dict[str, list[str]] = {}
    for name, (source, _, _) in loaded.items():
        names.setdefault(source.fingerprint, []).append(name)
    return [
        f"datasets {first} and {second} have the same content; keep one of them"
        for same in names.values()
        for first, second in itertools.combinations(same, 2)
    ]


def _audit(source: DataSource, dataset: Dataset, splits: Splits) -> Audit:
    of_rows = (splits.train_test(*split) for split in splits.of_level(refits=True))
    return kept_audit(Path(source.folder), dataset, of_rows, splits.hash)


def _audited(spec: DatasetSpec, found: Audit, n_dropped: int, related: list[Relation]) -> dict[str, Any]:
    """Return what provenance records about copies of a dataset's rows, within it and in other datasets."""
    return {
        "distinct_rows": found.distinct,
        "distinct_features": found.distinct_features,
        "tested_copies": found.tested_copies,
        "dropped_copies": n_dropped,
        "family": spec.family,
        "related": {relation.second: relation.why for relation in related if relation.first == spec.name},
    }


def _facts(source: DataSource, dataset: Dataset, splits: Splits) -> dict[str, Any]:
    n, d = dataset.X.shape
    stored = dataset.X.nnz if scipy.sparse.issparse(dataset.X) else int(np.count_nonzero(dataset.X != 0))
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
        "n_inner": list(splits.n_inner),
        "target": source.spec.target,
        "params": {name: value for name, value in source.spec.params.items() if is_number(value)},
    }
