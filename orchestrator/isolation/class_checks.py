"""Call code of classes that may end its process, or never return, in a child process.

Classes of scikit-learn are called in this process, which is faster. So are classes of a package that declares
that importing its modules and constructing its classes is harmless. It does so by a file `checked_in_process`
beside its `__init__.py`, which is found without importing the package.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.isolation.child_process import ProcessEnded, call_in_child
from orchestrator.isolation.exits import recorded_interrupts
from orchestrator.study.study import Arm
from orchestrator.study.text import error_line

_T = TypeVar("_T")
_R = TypeVar("_R")

CALL_SECONDS = 60.0
"""Time limit of a call, in seconds. Importing a large library from a busy file server takes 30 s."""

_MARKER = "checked_in_process"
"""Name of the file by which a package declares that its classes are harmless."""


def ask_classes(function: Callable[[_T], _R], questions: Sequence[tuple[str, _T]]) -> list[_R | ProcessEnded]:
    """Return the result of a function for each question.

    Code that is trusted runs in this process, and its exceptions are raised.

    Parameters
    ----------
    function : callable
        The function. Its results are pickled.
    questions : sequence of (str, _T)
        Dotted path of the module or class whose code the function runs, and the argument. After a path has
        ended its process, later questions return the same answer without a call.

    Returns
    -------
    list of _R or ProcessEnded
        The results, or a `ProcessEnded` where code that is not trusted raised or ended its process.
    """
    ended: dict[str, ProcessEnded] = {}

    def ask(question: tuple[str, _T]) -> _R | ProcessEnded:
        path, argument = question
        if path in ended:
            return ended[path]
        with recorded_interrupts():
            try:
                return function(argument)
            except BaseException as error:
                return ProcessEnded(f"raised {error_line(error)}")

    apart = call_in_child(
        ask, [each for each in questions if not is_trusted(each[0])], CALL_SECONDS, quiet=True
    )
    found: list[_R | ProcessEnded] = []
    for path, argument in questions:
        answer: Any = function(argument) if is_trusted(path) else next(apart)
        if isinstance(answer, ProcessEnded):
            ended[path] = answer
        found.append(answer)
    return found


def most_doubtful(paths: Sequence[str]) -> str:
    """Return the first dotted path that is not trusted, or else the first.

    Parameters
    ----------
    paths : sequence of str
        At least one dotted path.

    Returns
    -------
    str
        One of `paths`.
    """
    return next(itertools.filterfalse(is_trusted, paths), paths[0])


@cache
def is_ours(path: str) -> bool:
    """Return whether a package declares that its classes are harmless.

    Parameters
    ----------
    path : str
        Dotted path of a module or class of the package.

    Returns
    -------
    bool
        True if the package contains the marker file.
    """
    spec = PathFinder.find_spec(path.partition(".")[0])
    folders = (spec and spec.submodule_search_locations) or []
    return any(Path(folder, _MARKER).is_file() for folder in folders)


def starts_processes(arm: Arm) -> bool:
    """Return whether the trainings of an arm may start processes, or never end.

    This is assumed of any class that is not trusted. Classes of scikit-learn start processes if `n_jobs` is
    set.

    Parameters
    ----------
    arm : Arm
        Solver with its sweep values.

    Returns
    -------
    bool
        True if it may.
    """
    return not all(map(is_trusted, arm.targets)) or any(
        name.rpartition("__")[2] == "n_jobs" and value not in (None, 1)
        for name, value in named_values([arm.params, arm.space])
    )


@cache
def is_trusted(path: str) -> bool:
    """Return whether a class is part of scikit-learn, or of a package that declares its classes harmless.

    Parameters
    ----------
    path : str
        Dotted path of the class.

    Returns
    -------
    bool
        True if its code may run in this process.
    """
    return path.partition(".")[0] == "sklearn" or is_ours(path)


def named_values(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of all mappings in nested mappings and lists.

    Parameters
    ----------
    node : object
        A mapping, a list, or any other value, which yields nothing.

    Yields
    ------
    (str, object)
        Name and value.
    """
    if isinstance(node, Mapping):
        yield from ((name, value) for name, value in node.items() if isinstance(name, str))
        node = list(node.values())
    for item in node if isinstance(node, (list, tuple)) else ():
        yield from named_values(item)
