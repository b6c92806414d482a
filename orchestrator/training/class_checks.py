"""Questions to classes whose code may end its process or never return: asked in a child process.

Those of scikit-learn and of `solvers` are asked in this process, which takes no time.
"""

import importlib.util
import itertools
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.datasets.child_process import ProcessEnded, call_in_child
from orchestrator.study.text import error_line
from orchestrator.training.interrupts import recorded_interrupts

_T = TypeVar("_T")
_R = TypeVar("_R")

SECONDS = 60.0
"""How long an answer may take; importing a large library from a busy file server takes half a minute."""

_SOLVERS = Path(__file__).parents[2] / "solvers" / "__init__.py"


def answers(function: Callable[[_T], _R], questions: Sequence[tuple[str, _T]]) -> list[_R | ProcessEnded]:
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

    apart = call_in_child(ask, [each for each in questions if not is_trusted(each[0])], SECONDS, quiet=True)
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
def is_trusted(path: str) -> bool:
    """Whether a dotted path leads into scikit-learn or into our own `solvers`, not a user's of that name."""
    root = path.partition(".")[0]
    spec = importlib.util.find_spec(root) if root == "solvers" else None
    return root == "sklearn" or (spec is not None and spec.origin == str(_SOLVERS))
