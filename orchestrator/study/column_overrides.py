"""Overrides that leave out columns of a table, or group its rows, as they are typed in a shell."""

import re
import shlex
from collections.abc import Iterable, Sequence

from orchestrator.study.text import quoted

_PLAIN = re.compile(r"(?!(?i:null|true|false|nan|inf)$)[^\W\d][\w .-]*")
"""Name of a column that an override may hold without quotes."""

_SAFE = re.compile(r"[\w.-]+")
"""Name of a column that a shell reads as it is."""


def drop_override(names: Sequence[str]) -> str:
    """Return the override that leaves out columns, as it is typed in a shell.

    Parameters
    ----------
    names : sequence of str
        Names of columns.
    """
    are_plain = all(map(_PLAIN.fullmatch, names))  # an override with some quotes needs them everywhere
    return _typed(f"drop=[{','.join(names if are_plain else map(quoted, names))}]", names)


def groups_override(name: str) -> str:
    """Return the override that keeps rows with equal values of a column together, as it is typed in a shell.

    Parameters
    ----------
    name : str
        Name of the column.
    """
    return _typed(f"groups={name if _PLAIN.fullmatch(name) else quoted(name)}", [name])


def _typed(override: str, names: Iterable[str]) -> str:
    """Return an override with the quotes that a shell needs.

    Parameters
    ----------
    override : str
        The override.
    names : iterable of str
        Names in it.
    """
    return override if all(map(_SAFE.fullmatch, names)) and "'" not in override else shlex.quote(override)
