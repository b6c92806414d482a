"""Choose the preparation of each dataset × arm, and record what `table` does to which column."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import scipy.sparse

from orchestrator.datasets.dataset import Dataset
from orchestrator.isolation.child_process import ProcessEnded, call_in_child
from orchestrator.isolation.class_checks import ask_classes
from orchestrator.resampling.splits import take_rows
from orchestrator.study.preparation import AUTO, MINMAX, TABLE, Preparation
from orchestrator.study.study import Arm, Protocol, Study
from orchestrator.study.trials import REFIT, DataSource, Pair
from orchestrator.training.open_data import open_data
from orchestrator.training.preparation import fitted_preparation, steps_of_columns, with_kind
from orchestrator.training.split_data import preparation_seed

_SECONDS = 120.0
"""Time limit for preparing one split for the list of columns, in seconds."""


def chosen_preparations(
    study: Study, datasets: Mapping[str, Dataset]
) -> tuple[dict[Pair, Preparation], list[str]]:
    """Return the preparation of each dataset × arm.

    Parameters
    ----------
    study : Study
        Declared arms and protocol.
    datasets : mapping of str to Dataset
        The datasets by name.

    Returns
    -------
    preparations : dict of Pair to Preparation
        Preparations with their kinds and identities.
    problems : list of str
        One sentence for each preparation that does not suit a dataset. Also one for each solver whose class
        fails when it is asked whether it accepts missing values.
    """
    asked = {
        (name, arm.name): _asked(arm, study.protocol, dataset)
        for name, dataset in datasets.items()
        for arm in study.arms
    }
    arms = {arm.name: arm for arm in study.arms}
    several = list(dict.fromkeys((arm, found) for (_, arm), found in asked.items() if not found.scaling))
    questions = [(arms[arm].target, (found, arms[arm])) for arm, found in several]
    answers = ask_classes(lambda question: with_kind(*question), questions)
    problems = [
        f"solver {arms[arm].solver}: {arms[arm].target} {answer.reason} when it was asked whether it takes "
        "missing values. Correct it, or set `prepare: none` in its configuration"
        for (arm, _), answer in zip(several, answers, strict=True)
        if isinstance(answer, ProcessEnded)
    ]
    kinds = dict(zip(several, answers, strict=True))
    found = {pair: kinds.get((pair[1], each), each) for pair, each in asked.items()}
    sparse = {name for name, dataset in datasets.items() if scipy.sparse.issparse(dataset.X)}
    problems += [
        f"dataset {name}: preparation table takes tables of numbers and text, found a sparse matrix. "
        "Use protocol.prepare=minmax or standard"
        for name in sorted(sparse & {name for (name, _), each in asked.items() if each.name == TABLE})
    ]
    usable = {pair: each for pair, each in found.items() if isinstance(each, Preparation)}
    return usable, list(dict.fromkeys(problems))


def _asked(arm: Arm, protocol: Protocol, dataset: Dataset) -> Preparation:
    """Return the preparation that an arm gets on a dataset, without its kind.

    Parameters
    ----------
    arm : Arm
        Solver, which may ask for a preparation.
    protocol : Protocol
        Protocol, whose preparation is used if the solver asks for none.
    dataset : Dataset
        Dataset, which decides if the protocol leaves the choice open.
    """
    asked = Preparation(arm.prepare) if arm.prepare else protocol.preparation
    if asked.name != AUTO:
        return asked
    return Preparation(TABLE if dataset.odd_columns else MINMAX)


def same_trials(digests: Mapping[Pair, str], preparations: Mapping[Pair, Preparation]) -> list[str]:
    """Return a sentence for each two arms that are the same computation on a dataset.

    Parameters
    ----------
    digests : mapping of Pair to str
        Digest of the identity of each dataset × arm.
    preparations : mapping of Pair to Preparation
        Their preparations, which may be equal though the arms name different ones.
    """
    first: dict[str, str] = {}
    problems = []
    for (dataset, arm), digest in digests.items():
        other = first.setdefault(digest, arm)
        if other != arm:
            problems.append(
                f"solvers {other} and {arm} are the same computation on dataset {dataset}: both get the "
                f"preparation {preparations[dataset, arm].words}. Keep one of them"
            )
    return problems


def preparation_sentences(preparations: Mapping[Pair, Preparation]) -> Iterator[str]:
    """Yield a sentence for each preparation that is not the plain default, `minmax`.

    Parameters
    ----------
    preparations : mapping of Pair to Preparation
        Preparation of each dataset × arm.

    Yields
    ------
    str
        The preparation, and the datasets and arms that get it.
    """
    n_arms = len({arm for _, arm in preparations})
    arms_of: dict[tuple[str, str], list[str]] = {}
    for (dataset, arm), preparation in preparations.items():
        if preparation.name != MINMAX:
            arms_of.setdefault((preparation.words, dataset), []).append(arm)
    datasets_of: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (words, dataset), arms in arms_of.items():
        datasets_of.setdefault((words, tuple(arms)), []).append(dataset)
    for (words, solvers), datasets in datasets_of.items():
        for_whom = "all solvers" if len(solvers) == n_arms > 1 else ", ".join(solvers)
        yield f"Preparation of {', '.join(datasets)} for {for_whom}: {words}."


# -- what is done to which column ------------------------------------------------------------------


class _Question(NamedTuple):
    """A preparation whose columns are asked for.

    Attributes
    ----------
    source : DataSource
        The stored dataset.
    protocol : Protocol
        Resampling and seed.
    preparation : Preparation
        The preparation `table`, with its kind.
    """

    source: DataSource
    protocol: Protocol
    preparation: Preparation


def prepared_columns(
    protocol: Protocol,
    sources: Mapping[str, DataSource],
    preparations: Mapping[Pair, Preparation],
    runs: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return what each preparation does to which column, for the provenance.

    `table` is fitted on the training rows of the first refit, in a child process. An entry of an earlier run
    with the same data and preparation is used again.

    Parameters
    ----------
    protocol : Protocol
        Protocol of the study.
    sources : mapping of str to DataSource
        Location of the stored data, by dataset.
    preparations : mapping of Pair to Preparation
        Preparation of each dataset × arm.
    runs : sequence of mapping
        Provenance of earlier runs.

    Returns
    -------
    list of dict
        Entries with the keys `dataset`, `solvers`, `fingerprint`, `splits`, `preparation`, `words` and
        `columns`. The columns are pairs of a name and a description. They are empty if they are not known.
    """
    solvers: dict[tuple[str, Preparation], list[str]] = {}
    for (dataset, arm), preparation in preparations.items():
        solvers.setdefault((dataset, preparation), []).append(arm)
    known = {_key(entry): entry["columns"] for run in runs for entry in run.get("prepared_columns") or ()}
    entries: list[dict[str, Any]] = []
    wanted: list[tuple[dict[str, Any], _Question]] = []
    for (dataset, preparation), arms in solvers.items():
        source = sources[dataset]
        entry = {
            "dataset": dataset,
            "solvers": arms,
            "fingerprint": source.fingerprint,
            "splits": source.split_hash,
            "preparation": preparation.to_dict(),
            "words": preparation.words,
        }
        entries.append(entry | {"columns": known.get(_key(entry), [])})
        if preparation.name == TABLE and not entries[-1]["columns"]:
            wanted.append((entries[-1], _Question(source, protocol, preparation)))
    answers = call_in_child(_columns_or_none, [question for _, question in wanted], _SECONDS, quiet=True)
    for (asked, _), columns in zip(wanted, answers, strict=True):
        asked["columns"] = [] if isinstance(columns, ProcessEnded) else [*columns]
    return entries


def _key(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the values of an entry that decide its columns.

    Parameters
    ----------
    entry : mapping
        Entry of `prepared_columns`.
    """
    preparation = (f"{name}={value}" for name, value in sorted(entry["preparation"].items()))
    return entry["dataset"], entry["fingerprint"], entry["splits"], *preparation


def _columns_or_none(question: _Question) -> list[tuple[str, str]]:
    """Return the columns of a dataset with what `table` does to each; empty if it fails.

    Parameters
    ----------
    question : _Question
        The dataset and the preparation.
    """
    source, protocol, preparation = question
    try:
        dataset, splits = open_data(source, protocol)
        train, _ = splits.train_test(0)
        X, seed = take_rows(dataset.X, train), preparation_seed(source, protocol, 0, REFIT)
        with warnings.catch_warnings(action="ignore"):
            fitted, _ = fitted_preparation(preparation, X, dataset.y[train], seed)
        names = [*map(str, X.columns)] if isinstance(X, pd.DataFrame) else list(dataset.columns)
        names = names or [f"x{k}" for k in range(X.shape[1])]
        return list(steps_of_columns(preparation.kind, fitted, names))
    except Exception:  # its trials fail with the reason
        return []
