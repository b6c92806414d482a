"""Solvers that are named by the dotted path of their class, such as `sklearn.svm.SVC`."""

import importlib.util
import re
from pathlib import Path

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
"""Dotted path of a class or function in a module."""


def is_class(name: str) -> bool:
    """Return whether a solver's name has the form of a dotted path.

    Parameters
    ----------
    name : str
        Name as typed.
    """
    return _DOTTED.fullmatch(name) is not None


def class_suggestion(name: str, near: str) -> str:
    """Return the suggestions for an unknown solver: a similar name, and classes of scikit-learn of this name.

    Parameters
    ----------
    name : str
        Name as typed.
    near : str
        Suggestion of a similar name, as `did_you_mean` returns it; empty if there is none.
    """
    found = _classes_of_sklearn().get(name.lower()) if name.isidentifier() else None
    if found is None:
        return near
    return f"{near.removesuffix('?')} or {found!r}?" if near else f"; did you mean {found!r}?"


def _classes_of_sklearn() -> dict[str, str]:
    """Return the public classes of scikit-learn by their names in lower case, without importing it."""
    spec = importlib.util.find_spec("sklearn")
    folders = (spec.submodule_search_locations or ()) if spec is not None else ()
    found: dict[str, str] = {}
    for folder in map(Path, folders):
        for file in sorted(folder.glob("*/__init__.py")):
            public = re.search(r"__all__\s*=\s*\[(.*?)\]", file.read_text(encoding="utf-8"), re.DOTALL)
            names = re.findall(r"[\"']([A-Z]\w*)[\"']", public[1]) if public else []
            found |= {each.lower(): f"sklearn.{file.parent.name}.{each}" for each in names}
    return found
