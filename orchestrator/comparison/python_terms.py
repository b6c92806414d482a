"""Messages about keys of the command line, in terms of the arguments of `compare`."""

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.study.errors import ConfigError, ExecutionError, StudyStopped

_OF_PROTOCOL = ("outer", "inner", "repeats", "seed", "metric", "also", "prepare")
"""Arguments of `compare` that are keys of `protocol`."""

_ARGUMENTS = {
    **{f"protocol.{name}": name for name in _OF_PROTOCOL},
    "search.budget": "candidates",
    "cluster.workers": "workers",
}
"""Arguments of `compare` by the key that they set."""

_TEXTS = ("metric", "prepare", "search", "cluster")
"""Arguments of `compare` whose value may be a text."""

_COPIES = re.compile(r"dataset\.[^\s()]+\.deduplicate=(drop|group)")
"""Override that drops copies of rows or makes them one group, which no argument of `compare` does."""

_OF_COPIES = {"drop": "frame.drop_duplicates()", "group": "groups=COLUMN, with one value in equal rows"}
"""Remedy in Python by the value of that override."""

_SHELL = r"""(?:[^']|'"'"')*"""
"""Text between single quotes of a shell, in which `'"'"'` is a quote."""

_NODE = re.compile(r"\{_target_: (?:\w+\.)*(\w+)((?:, \w+: [\w.]+)*(?:, …)?)\}")
"""Configuration of an object, such as `{_target_: sklearn.model_selection.KFold, n_splits: 5}` or
`{_target_: sklearn.metrics.make_scorer, score_func: mymetric.f2, …}`."""

_QUOTED_NODE = re.compile(rf"'([\w.]+={_NODE.pattern})'")
"""Override whose value is such a configuration, in the quotes of a shell."""

_COLUMNS = re.compile(
    rf"'(?:drop|groups)={_SHELL}'|(?<![\w.'])(?:drop=\[[^\]]*\]|groups=[\w.-]*\w(?![\w=(\[]))"
)
"""Override that leaves out columns or names the column of groups, with or without the quotes of a shell."""

_NAME = re.compile(r"'(?:[^'\\]|\\.)*'|[^,]+")
"""Name in a list, with or without quotes."""

_KEY = re.compile(rf"(?<!['\w.])({'|'.join(map(re.escape, _ARGUMENTS))})(?![\w.])")
"""Key of `_ARGUMENTS` that is not in quotes."""

_FOUND = re.compile(r"\b(?:found|or) (?:null|true|false)\b|\bfound [\[({][^'\"]*")
"""Value of a caller, or an alternative to it, in which YAML's words may occur."""

_WORD = re.compile(r"\b(null|true|false)\b")

_WORDS = {"null": "None", "true": "True", "false": "False"}
"""Values of Python by their words in YAML."""

_VALUE = re.compile(rf"(?<![\w.])({'|'.join(_TEXTS)})=([a-z]\w*)(?![\w.=(\[])")
"""Argument of `_TEXTS` with a text as its value."""


def in_python(text: str) -> str:
    """Return a text with the arguments of `compare` in place of the keys that they set.

    A key in quotes stays, because it is a suggestion for an override that the caller has misspelt.

    Parameters
    ----------
    text : str
        Message or answer, such as `set protocol.prepare=table`.

    Returns
    -------
    str
        For example `set prepare="table"`.
    """
    text = _QUOTED_NODE.sub(r"\1", text)
    text = _NODE.sub(lambda found: f"{found[1]}({found[2].removeprefix(', ').replace(': ', '=')})", text)
    text = _COLUMNS.sub(_of_columns, text)
    text = _KEY.sub(lambda found: _ARGUMENTS[found[1]], text)
    text = _FOUND.sub(lambda found: _WORD.sub(lambda word: _WORDS[word[1]], found[0]), text)
    text = _COPIES.sub(lambda found: _OF_COPIES[found[1]], text)
    return _VALUE.sub(r'\1="\2"', text)


def _of_columns(found: re.Match[str]) -> str:
    """Return the Python expression for an override that leaves out columns, or names the column of groups.

    Parameters
    ----------
    found : re.Match
        The override, as it is typed in a shell.
    """
    try:
        key, _, value = shlex.split(found[0])[0].partition("=")
        listed = _NAME.findall(value.removeprefix("[").removesuffix("]"))
    except ValueError:  # a text that a caller has typed
        return found[0]
    names = [_without_quotes(name) if name[0] == "'" else name for name in listed]
    return f"frame.drop(columns={names})" if key == "drop" else f"groups={names[0]!r}" if names else found[0]


def _without_quotes(name: str) -> str:
    """Return the text that `orchestrator.study.text.quoted` has put in quotes.

    Parameters
    ----------
    name : str
        Text in single quotes.
    """
    return re.sub(r"(\\+)('|$)", lambda found: "\\" * (len(found[1]) // 2) + found[2], name[1:-1])


@contextmanager
def messages_in_python() -> Iterator[None]:
    """Raise errors of a block with messages in terms of `compare`."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(list(map(in_python, error.problems))) from error
    except (ExecutionError, StudyStopped) as error:
        if (text := in_python(str(error))) == str(error):
            raise
        raise type(error)(text) from error
