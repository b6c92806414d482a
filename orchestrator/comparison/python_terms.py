"""Messages about keys of the command line, in terms of the arguments of `compare`."""

import re
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

_KEY = re.compile(rf"(?<!['\w.])({'|'.join(map(re.escape, _ARGUMENTS))})(?![\w.])")
_VALUE = re.compile(rf"(?<![\w.])({'|'.join(_TEXTS)})=([a-z]\w*)(?![\w.=(\[])")


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
    text = _KEY.sub(lambda found: _ARGUMENTS[found[1]], text)
    return _VALUE.sub(r'\1="\2"', text)


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
