"""Compile the code that a study will use before its first training, in several processes."""

import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from time import perf_counter

from orchestrator.engine.compilation import has_compiled_functions
from orchestrator.engine.prepare import PreparedStudy, prepare_study
from orchestrator.execution.installation import THREAD_LIMITS, choose_numba_cache
from orchestrator.search.fold_search import FoldSearch
from orchestrator.study.settings import Settings
from orchestrator.study.text import format_seconds
from orchestrator.study.trials import REFIT, Batch, WorkOrder
from orchestrator.training.run_batch import compile_code
from orchestrator.training.source_hash import source_packages
from orchestrator.training.worker_state import capture_warnings

MAX_PROCESSES = 2
"""Largest number of processes that compile. Each imports numba first, which takes a second of its core."""


def warm(settings: Settings, say: Callable[[str], None]) -> None:
    """Compile, on this host, all code that the trainings of a study use, and report each arm.

    Every arm with compiled functions trains on a few rows of each dataset, for an inner split and a refit.
    Nothing is stored except the machine code.

    Parameters
    ----------
    settings : Settings
        Settings of the run.
    say : callable
        Prints a sentence.
    """
    prepared = prepare_study(settings)
    targets = {target for arm in settings.study.arms for target in arm.targets}
    packages = sorted({name for target in targets for name in source_packages(target)})
    tasks = _tasks(prepared)
    if not tasks:
        say("No solver of this study has functions for numba to compile.")
        return
    processes = min(MAX_PROCESSES, len(tasks), os.cpu_count() or 1)
    number = f"{processes} process{'es' if processes > 1 else ''}"
    say(f"Compiling {', '.join(_arms(orders) for orders in tasks)} in {number} …")
    started = perf_counter()
    is_shared = not settings.cluster.in_process  # with workers, whose cache is not beside the sources
    arguments = (packages if is_shared else (), processes > 1)
    with ProcessPoolExecutor(processes, get_context("spawn"), _start, arguments) as pool:
        pending = {pool.submit(_compile, orders): orders for orders in tasks}
        for future in as_completed(pending):
            say(f"{_arms(pending[future])}: compiled and read in {format_seconds(future.result())}")
    say(f"All is compiled, after {format_seconds(perf_counter() - started)}.")


def _tasks(prepared: PreparedStudy) -> list[list[WorkOrder]]:
    """Return the orders of the arms that compile, in groups of arms with the same classes.

    Parameters
    ----------
    prepared : PreparedStudy
        The study with its datasets and identities.

    Returns
    -------
    list of list of WorkOrder
        Orders by classes: an inner split and a refit of each dataset × arm.
    """
    study = prepared.study
    tasks: dict[tuple[str, ...], list[WorkOrder]] = {}
    for (dataset, name), identity in prepared.identities.items():
        if not any(map(has_compiled_functions, identity.arm.targets)):
            continue
        paths = FoldSearch(identity, study.search, 0).ask()
        if not paths:
            continue
        refit = replace(paths[0].only([0]), inner=REFIT, warm_starts=False)
        order = WorkOrder(
            study=study.name,
            run_id="",
            source=prepared.sources[dataset],
            arm=identity.arm,
            identity=identity.digest,
            shared_gram=identity.shared_gram,
            protocol=identity.protocol,
            batch=Batch(0, dataset, name, (paths[0], refit), attempt=1, base_seconds=0.0),
            gram_memory=prepared.gram_memory,
        )
        tasks.setdefault(identity.arm.targets, []).append(order)
    return list(tasks.values())


def _arms(orders: Sequence[WorkOrder]) -> str:
    """Return the names of the arms of some orders, separated by commas.

    Parameters
    ----------
    orders : sequence of WorkOrder
        Orders, of one or several arms.
    """
    return ", ".join(dict.fromkeys(order.arm.name for order in orders))


def _start(packages: Collection[str], is_limited: bool) -> None:
    """Choose the cache of a new process, before it imports numba.

    Parameters
    ----------
    packages : collection of str
        Packages of the solvers, whose cache the workers of this host share. Empty for the cache beside the
        sources.
    is_limited : bool
        Whether the process may use one core only.
    """
    if packages:
        choose_numba_cache(packages)
    if is_limited:
        os.environ.update(THREAD_LIMITS)


def _compile(orders: Sequence[WorkOrder]) -> float:
    """Compile the code of some orders in this process.

    Parameters
    ----------
    orders : sequence of WorkOrder
        Orders of one class.

    Returns
    -------
    float
        Elapsed seconds.
    """
    capture_warnings()  # the client says what is compiled
    return sum(map(compile_code, orders))
