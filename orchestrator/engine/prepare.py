"""Prepare a checked study: load and split its datasets, and compute the identity of each dataset × arm."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from orchestrator.datasets.about import given_file
from orchestrator.datasets.audit import Audit
from orchestrator.datasets.dataset import Dataset, DatasetError
from orchestrator.datasets.families import Relation, relations
from orchestrator.datasets.findings import cached_audit
from orchestrator.engine.changed_sources import file_stamp
from orchestrator.engine.cost_model import Shape
from orchestrator.engine.feasibility import infeasible, without_value
from orchestrator.engine.preparations import chosen_preparations, same_trials
from orchestrator.engine.sampled_from import with_sample
from orchestrator.engine.selected_by import with_selected
from orchestrator.isolation.child_process import ProcessEnded
from orchestrator.isolation.class_checks import ask_classes
from orchestrator.resampling.splits import Splits
from orchestrator.search.fold_search import planned_trials
from orchestrator.study.equivalences import EQUIVALENCES
from orchestrator.study.errors import ConfigError
from orchestrator.study.families import Family, families
from orchestrator.study.preparation import ONE_HOT, SCALINGS, STANDARD, Preparation
from orchestrator.study.settings import MAX_TRAININGS, Settings
from orchestrator.study.study import Arm, DatasetSpec, Protocol, Study, arm_on
from orchestrator.study.trials import DataSource, Identity, Pair
from orchestrator.study.values import is_number
from orchestrator.training.estimators import takes_shared_gram
from orchestrator.training.gram import MAX_ROWS, memory_for_gram
from orchestrator.training.metrics import takes_features
from orchestrator.training.open_data import prepare_data

Loaded = Mapping[str, tuple[DataSource, Dataset, Splits]]
"""Location, content and splits of each prepared dataset, by name."""

NAMED = 3
"""Largest number of datasets or families that one sentence lists in full."""


@dataclass(frozen=True)
class PreparedStudy:
    """A study whose datasets are loaded and split.

    Attributes
    ----------
    study : Study
        The study. A search at another study's selections contains them.
    sources : mapping of str to DataSource
        Location of the prepared data, by dataset.
    shapes : mapping of str to Shape
        Size, by dataset.
    identities : mapping of Pair to Identity
        All inputs that change the results, by dataset × arm.
    datasets : list of dict of str to object
        Summaries of the datasets, for provenance.
    data_warnings : list of str
        Sentences about data that make scores look too good, or the number of datasets too large.
    table_notes : list of str
        Warnings and findings about tables that are read from the user's files, which a run prints too.
    gram_memory : float
        Largest memory for the Gram matrices of a split on a worker, in bytes. It does not change results.
    files : mapping of str to dict of str to object
        Stamp of the file of each dataset that is read from one, taken before reading; see `changed_sources`.
    preparations : mapping of Pair to Preparation
        Preparation of the features, by dataset × arm.
    equivalences : list of dict of str to object
        Versions of code with the same numbers as today's; see `study.equivalences`.
    """

    study: Study
    sources: Mapping[str, DataSource]
    shapes: Mapping[str, Shape]
    identities: Mapping[Pair, Identity]
    datasets: list[dict[str, Any]]
    data_warnings: list[str] = field(default_factory=list)
    table_notes: list[str] = field(default_factory=list)
    gram_memory: float = math.inf
    files: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    preparations: Mapping[Pair, Preparation] = field(default_factory=dict)
    equivalences: list[dict[str, Any]] = field(default_factory=list)

    def planned_trials(self) -> dict[Pair, int]:
        """Return the largest number of trials of each dataset × arm.

        Returns
        -------
        dict of (str, str) to int
            Numbers of trials if every search evaluates all candidates that it may.
        """
        return {
            pair: planned_trials(identity, self.study.search) for pair, identity in self.identities.items()
        }

    def outer_folds(self, pair: Pair) -> range:
        """Return the numbers of the outer splits of a dataset × arm.

        Parameters
        ----------
        pair : Pair
            Names of the dataset and the arm.

        Returns
        -------
        range
            All outer splits.
        """
        return range(len(self.identities[pair].n_inner))

    def identity_digests(self) -> list[tuple[str, str]]:
        """Return the name of the dataset and the identity of each dataset × arm.

        Returns
        -------
        list of (str, str)
            In the order of the study.
        """
        return [(dataset, identity.digest) for (dataset, _), identity in self.identities.items()]

    def declaration(self) -> dict[str, Any]:
        """Return the declaration of the study that a run records; `current_declaration` reads it.

        Returns
        -------
        dict of str to object
            Values that can be stored as JSON.
        """
        study = self.study
        identities = {pair: identity.digest for pair, identity in self.identities.items()}
        shared_gram = {pair: identity.shared_gram for pair, identity in self.identities.items()}
        common = Preparation(SCALINGS[study.protocol.scaling])
        preparations = {
            pair: preparation.to_dict()
            for pair, preparation in self.preparations.items()
            if preparation != common
        }
        return {
            "study": {
                "name": study.name,
                "datasets": self.datasets,
                "arms": [arm.to_dict() for arm in study.arms],
                "search": study.search.to_record(),
                "protocol": study.protocol.to_dict(),
            },
            "identities": _nested(identities),
            "shared_gram": _nested(shared_gram),
            "planned": _nested(self.planned_trials()),
            **({"preparations": _nested(preparations)} if preparations else {}),
            **({EQUIVALENCES: self.equivalences} if self.equivalences else {}),
        }


def _named_datasets(names: Sequence[str]) -> str:
    """Return the names of the datasets that have a problem, or some of many.

    Parameters
    ----------
    names : sequence of str
        Names of the datasets.

    Returns
    -------
    str
        For example `datasets 'a', 'b', 'c' and 2 more`.
    """
    if len(names) == 1:
        return f"dataset {names[0]!r}"
    some, more = names[:NAMED], len(names) - NAMED
    return f"datasets {', '.join(map(repr, some))}{f' and {more} more' if more > 0 else ''}"


def _on_families(found: Sequence[Family]) -> list[str]:
    """Return sentences about the datasets that count once in a test.

    Parameters
    ----------
    found : sequence of Family
        Families of several datasets.

    Returns
    -------
    list of str
        One sentence for each family, or a single one for more than `NAMED`.
    """
    counted = "counted once in a test unless report.families=apart"
    if len(found) <= NAMED:
        return [f"{family}: one family, {counted}" for family in found]
    sizes = (f"{family.name.removeprefix('family ')} ({len(family.datasets)})" for family in found)
    return [f"{len(found)} families of several datasets, each {counted}: {', '.join(sizes)}"]


def _nested(values: Mapping[Pair, Any]) -> dict[str, dict[str, Any]]:
    """Return values by dataset and then by arm.

    Parameters
    ----------
    values : mapping of Pair to object
        Values by dataset × arm.

    Returns
    -------
    dict of str to dict of str to object
        The same values.
    """
    nested: dict[str, dict[str, Any]] = {}
    for (dataset, arm), value in values.items():
        nested.setdefault(dataset, {})[arm] = value
    return nested


def prepare_study(settings: Settings) -> PreparedStudy:
    """Load every dataset, store it where workers can map it, and compute the study's identities.

    Parameters
    ----------
    settings : Settings
        Settings of the study.

    Returns
    -------
    PreparedStudy
        Datasets, splits and identities that a run needs.

    Raises
    ------
    ConfigError
        If a dataset, metric or solver cannot be used, or the study has too many trainings.
    """
    files = _files(settings.study)
    loaded, problems = _loaded(settings)
    study = settings.study if problems else _with_candidates(settings, loaded)
    datasets = {name: dataset for name, (_, dataset, _) in loaded.items()}
    preparations, unprepared = chosen_preparations(study, datasets)
    problems += unprepared
    problems += infeasible(study, datasets, preparations)
    for name, (_, dataset, splits) in loaded.items():
        problems += without_value(study.protocol, name, dataset, splits)
    if problems:
        raise ConfigError(problems)
    identities = _identities(study, loaded, preparations)
    number = sum(planned_trials(identity, study.search) for identity in identities.values())
    if number > MAX_TRAININGS:
        raise ConfigError(
            [
                f"the study asks for {number:.3g} trainings; expected at most {MAX_TRAININGS:,}. "
                "Use fewer splits, values, solvers or datasets"
            ]
        )
    audits = {name: _audit(*each) for name, each in loaded.items()}
    summaries = _summaries(study, loaded, audits)
    return PreparedStudy(
        study,
        sources={name: source for name, (source, _, _) in loaded.items()},
        shapes={name: _shape(dataset, splits) for name, (_, dataset, splits) in loaded.items()},
        identities=identities,
        datasets=summaries,
        data_warnings=[
            *(text for name, found in audits.items() for text in found.warnings(datasets[name])),
            *_on_families(families({each["name"]: each for each in summaries})),
        ],
        table_notes=list(_table_notes(study, datasets, audits)),
        gram_memory=memory_for_gram(settings.cluster.memory),
        files=files,
        preparations=preparations,
    )


def _loaded(settings: Settings) -> tuple[Loaded, list[str]]:
    """Load every dataset and store it where workers can map it.

    Parameters
    ----------
    settings : Settings
        Settings of the study.

    Returns
    -------
    loaded : mapping of str to (DataSource, Dataset, Splits)
        The datasets that can be used, by name.
    problems : list of str
        Sentences about the other ones, and about datasets of equal content.
    """
    study = settings.study
    loaded: dict[str, tuple[DataSource, Dataset, Splits]] = {}
    unusable: dict[str, list[str]] = {}
    for spec in study.datasets:
        try:
            loaded[spec.name] = prepare_data(spec, study.protocol, settings.paths.cache, settings.data_memory)
        except (DatasetError, OSError) as error:
            problem = str(error).removeprefix(f"dataset {spec.name!r}: ")
            unusable.setdefault(problem, []).append(spec.name)
    problems = [f"{_named_datasets(names)}: {problem}" for problem, names in unusable.items()]
    return loaded, [*problems, *_same_content(loaded)]


def _with_candidates(settings: Settings, loaded: Loaded) -> Study:
    """Return the study with the candidates that its search takes from another study, if it does.

    Parameters
    ----------
    settings : Settings
        Settings of the study.
    loaded : mapping of str to (DataSource, Dataset, Splits)
        Its datasets, by name.

    Returns
    -------
    Study
        The study, unchanged for other searches.

    Raises
    ------
    ConfigError
        If the other study cannot be used.
    """
    sources = {name: source for name, (source, _, _) in loaded.items()}
    fingerprints = {name: source.fingerprint for name, source in sources.items()}
    study = with_selected(settings.study, fingerprints, settings.paths.results)
    return with_sample(study, sources, settings.paths.results)


def _identities(
    study: Study, loaded: Loaded, preparations: Mapping[Pair, Preparation]
) -> dict[Pair, Identity]:
    """Return the identity of each dataset × arm.

    Parameters
    ----------
    study : Study
        The study.
    loaded : mapping of str to (DataSource, Dataset, Splits)
        Its datasets, by name.
    preparations : mapping of Pair to Preparation
        Preparation of the features, by dataset × arm.

    Returns
    -------
    dict of Pair to Identity
        All inputs that change the results, by dataset × arm.

    Raises
    ------
    ConfigError
        If two arms have the same trials.
    """
    datasets = {name: dataset for name, (_, dataset, _) in loaded.items()}
    shared_gram = _shared_gram(study, datasets, preparations)
    identities = {
        (name, arm.name): Identity(
            name,
            source.fingerprint,
            source.split_hash,
            arm_on(arm, study.search.options, name),
            study.protocol.for_preparation(preparations[name, arm.name]),
            shared_gram=shared_gram[name, arm.name],
            n_inner=splits.n_inner,
        )
        for (name, (source, _, splits)), arm in itertools.product(loaded.items(), study.arms)
    }
    digests = {pair: identity.digest for pair, identity in identities.items()}
    if problems := same_trials(digests, preparations):
        raise ConfigError(problems)
    return identities


def _summaries(study: Study, loaded: Loaded, audits: Mapping[str, Audit]) -> list[dict[str, Any]]:
    """Return the summaries of the datasets, for provenance.

    Parameters
    ----------
    study : Study
        The study.
    loaded : mapping of str to (DataSource, Dataset, Splits)
        Its datasets, by name.
    audits : mapping of str to Audit
        What was found in each dataset, by name.

    Returns
    -------
    list of dict of str to object
        Summaries in declared order.
    """
    related = relations(
        {name: dataset.X for name, (_, dataset, _) in loaded.items()},
        {spec.name: spec.family for spec in study.datasets},
        {name: Path(source.folder) for name, (source, _, _) in loaded.items()},
    )
    return [
        _summary(*loaded[spec.name]) | _audited(spec, audits[spec.name], loaded[spec.name][1], related)
        for spec in study.datasets
    ]


def _table_notes(study: Study, datasets: Mapping[str, Dataset], audits: Mapping[str, Audit]) -> Iterator[str]:
    """Yield warnings and findings about tables that are read from the user's files.

    Parameters
    ----------
    study : Study
        The study.
    datasets : mapping of str to Dataset
        Its datasets, by name.
    audits : mapping of str to Audit
        What was found in each dataset, by name.

    Yields
    ------
    str
        A line.
    """
    has_splitter = not isinstance(study.protocol.outer, int)
    for spec in filter(_is_own_table, study.datasets):
        found, dataset = audits[spec.name], datasets[spec.name]
        yield from found.warnings(dataset)
        yield from found.brief(dataset, has_splitter)


def _is_own_table(spec: DatasetSpec) -> bool:
    """Return whether a dataset is read from the user's files by a loader of this program.

    Parameters
    ----------
    spec : DatasetSpec
        Dataset of the configuration.

    Returns
    -------
    bool
        False for files of packages, whose columns are known.
    """
    is_file = not {"path", "train"}.isdisjoint(spec.params)
    return is_file and not spec.params.get("package") and spec.target.startswith("orchestrator.datasets.")


def _files(study: Study) -> dict[str, dict[str, Any]]:
    """Return the stamp of the file of each dataset that is read from one.

    Parameters
    ----------
    study : Study
        Declared datasets, arms, search and protocol.

    Returns
    -------
    dict of str to dict of str to object
        Stamps by dataset.
    """
    stamps = {}
    for spec in study.datasets:
        path, package = given_file({"_target_": spec.target, **spec.params})
        if path and (stamp := file_stamp(path, package)) is not None:
            stamps[spec.name] = stamp
    return stamps


def _shared_gram(
    study: Study, datasets: Mapping[str, Dataset], preparations: Mapping[Pair, Preparation]
) -> dict[Pair, bool]:
    """Return which dataset × arm shares Gram matrices between trials.

    Parameters
    ----------
    study : Study
        Declared datasets, arms, search and protocol.
    datasets : mapping of str to Dataset
        The datasets by name.
    preparations : mapping of Pair to Preparation
        Preparation of each dataset × arm.

    Returns
    -------
    dict of Pair to bool
        True for each pair that shares them.

    Raises
    ------
    ConfigError
        If a solver ends its process, or never answers, when it is asked.
    """
    pairs = list(itertools.product(datasets.items(), study.arms))
    found = ask_classes(
        lambda pair: _shares_gram(
            pair[1], pair[0][1], study.protocol, preparations[pair[0][0], pair[1].name]
        ),
        [(arm.target, (dataset, arm)) for dataset, arm in pairs],
    )
    problems = [
        f"solver {arm.solver}: {arm.target} {answer.reason} when it was asked whether it takes shared kernel "
        "matrices. Correct its method prefers_gram"
        for (_, arm), answer in zip(pairs, found, strict=True)
        if isinstance(answer, ProcessEnded)
    ]
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))
    return {(name, arm.name): answer is True for ((name, _), arm), answer in zip(pairs, found, strict=True)}


def _shares_gram(arm: Arm, dataset: Dataset, protocol: Protocol, preparation: Preparation) -> bool:
    """Return whether the trials of an arm share Gram matrices.

    Shared matrices are rounded, so the answer depends only on values that are in a trial's key.

    Parameters
    ----------
    arm : Arm
        Solver with its sweep values.
    dataset : Dataset
        Loaded features, labels and metadata.
    protocol : Protocol
        Declared profile and custom metrics, which may rule sharing out.
    preparation : Preparation
        Preparation of the features, whose result must be finite numbers.

    Returns
    -------
    bool
        True if they share them.
    """
    n, d = dataset.X.shape
    scaled = preparation.scaling or preparation.name == STANDARD
    is_finite = dataset.is_plain if scaled else preparation.kind == ONE_HOT
    if protocol.profile != "throughput" or n > MAX_ROWS or not is_finite:
        return False
    if protocol.inner is None:  # matrices are shared on inner splits only
        return False
    if any(map(takes_features, protocol.custom_metrics)):
        return False
    return takes_shared_gram(arm, n, d)


def _shape(dataset: Dataset, splits: Splits) -> Shape:
    """Return the size of a dataset and the mean share of its rows in training sets of both levels.

    Parameters
    ----------
    dataset : Dataset
        Loaded features, labels and metadata.
    splits : Splits
        Its outer and inner splits.

    Returns
    -------
    Shape
        Size, from which costs are predicted.
    """
    n, d = dataset.X.shape
    levels = (True, False) if any(splits.n_inner) else (True, True)  # some searches have no inner splits
    shares = (
        np.mean([len(splits.train_test(*split)[0]) for split in splits.of_level(refits)]) / n
        for refits in levels
    )
    return Shape(n, d, len(dataset.classes), *map(float, shares))


def _same_content(loaded: Mapping[str, tuple[DataSource, Dataset, Splits]]) -> list[str]:
    """Return a sentence for each two datasets of equal content, which would count twice as evidence.

    Parameters
    ----------
    loaded : mapping of str to (DataSource, Dataset, Splits)
        Source, dataset and splits, by name.

    Returns
    -------
    list of str
        One sentence for each pair of datasets; empty if all differ.
    """
    names: dict[str, list[str]] = {}
    for name, (source, _, _) in loaded.items():
        names.setdefault(source.fingerprint, []).append(name)
    return [
        f"datasets {first} and {second} have the same content. Remove one of them"
        for same in names.values()
        for first, second in itertools.combinations(same, 2)
    ]


def _audit(source: DataSource, dataset: Dataset, splits: Splits) -> Audit:
    """Return the audit of a dataset, computed or read from its prepared copy.

    Parameters
    ----------
    source : DataSource
        Location of the prepared data.
    dataset : Dataset
        Loaded features, labels and metadata.
    splits : Splits
        Its outer and inner splits.

    Returns
    -------
    Audit
        Findings about copies of rows.
    """
    of_rows = (splits.train_test(*split) for split in splits.of_level(refits=True))
    return cached_audit(Path(source.folder), dataset, of_rows, splits.hash)


def _audited(spec: DatasetSpec, found: Audit, dataset: Dataset, related: list[Relation]) -> dict[str, Any]:
    """Return the summary of a dataset's columns that give the label, and of copies of its rows.

    Parameters
    ----------
    spec : DatasetSpec
        The declared dataset.
    found : Audit
        What was found in the dataset.
    dataset : Dataset
        The loaded dataset.
    related : list of Relation
        Relations between the datasets of the study.

    Returns
    -------
    dict of str to object
        Values for provenance.
    """
    return {
        "distinct_rows": found.distinct,
        "distinct_features": found.distinct_features,
        "tested_copies": found.tested_copies,
        "dropped_copies": dataset.n_dropped,
        "label_columns": found.label_columns(dataset),
        "family": spec.family,
        "related": {relation.second: relation.why for relation in related if relation.first == spec.name},
    }


def _summary(source: DataSource, dataset: Dataset, splits: Splits) -> dict[str, Any]:
    """Return the summary of a dataset for provenance.

    Parameters
    ----------
    source : DataSource
        Location of the prepared data.
    dataset : Dataset
        Loaded features, labels and metadata.
    splits : Splits
        Its outer and inner splits.

    Returns
    -------
    dict of str to object
        Values that can be stored as JSON.
    """
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
