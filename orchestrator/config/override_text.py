"""Overrides as a user types them, in the form that Hydra's parser accepts."""

import re

_TOKEN = re.compile(r"[^\[\]{}(),'\"]+")
"""Text between the brackets and commas of a value."""


def with_quotes(text: str) -> str:
    """Return an override with quotes round each name or path that has letters outside ASCII.

    Hydra's parser reads such letters only between quotes: `study='größe'`.

    Parameters
    ----------
    text : str
        Override as typed. One with quotes is returned unchanged.
    """
    key, equals, value = text.partition("=")
    if value.isascii() or "'" in value or '"' in value:
        return text
    return key + equals + _TOKEN.sub(lambda token: _quoted(token[0]), value)


def _quoted(token: str) -> str:
    inner = token.strip()
    if inner.isascii() or inner.endswith("\\"):
        return token
    start = token.index(inner)
    return f"{token[:start]}'{inner}'{token[start + len(inner) :]}"
