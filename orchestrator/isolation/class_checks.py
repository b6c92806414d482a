"""Questions to classes whose code may end its process or never return: asked in a child process.

Those of scikit-learn are asked in this process, which takes no time. So are those of a package that says
that importing its modules and constructing its classes harms no process: by a file `checked_in_process`
beside its `__init__.py`, which is found without importing it.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.isolation.child_process import ProcessEnded, call_in_child
from orchestrator.isolation.interrupts import recorded_interrupts
from orchestrator.study.study import Arm
from orchestrator.study.text import error_line

_T = TypeVar("_T")
_R = TypeVar("_R")

CALL_SECONDS = 60.0
"""How long an answer may take; importing a large library from a busy file server takes half a minute."""

_MARKER = "checked_in_process"


def ask_classes(function: Callable[[_T], _R], questions: Sequence[tuple[str, _T]]) -> list[_R | ProcessEnded]:
    """Return what a function returns for each question.

    Parameters
    ----------
    function : callable
        What it returns is pickled.
    questions : sequence of (str, object)
        The dotted path of a module or class, code of which the function runs, and its argument. What has
        ended its process once is asked nothing more.
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
    """Return the first dotted path that is not trusted, else the first."""
    return next(itertools.filterfalse(is_trusted, paths), paths[0])


@cache
def is_ours(path: str) -> bool:
    """Whether a dotted path leads into a package whose classes are checked in this process."""
    spec = PathFinder.find_spec(path.partition(".")[0])
    folders = (spec and spec.submodule_search_locations) or []
    return any(Path(folder, _MARKER).is_file() for folder in folders)


def starts_processes(arm: Arm) -> bool:
    """Whether the trainings of an arm may start processes, or never end, as those of any unknown class may.

    Classes of scikit-learn's do if they are asked to by `n_jobs`.
    """
    return not all(map(is_trusted, arm.targets)) or any(
        name.rpartition("__")[2] == "n_jobs" and value not in (None, 1)
        for name, value in named_values([arm.params, arm.space])
    )


@cache
def is_trusted(path: str) -> bool:
    """Whether a dotted path leads into scikit-learn, or into a package that is checked in this process."""
    return path.partition(".")[0] == "sklearn" or is_ours(path)


def named_values(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of mappings at any depth of mappings and lists."""
    if isinstance(node, Mapping):
        yield from ((name, value) for name, value in node.items() if isinstance(name, str))
        node = list(node.values())
    for item in node if isinstance(node, (list, tuple)) else ():
        yield from named_values(item)
