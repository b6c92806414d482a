"""Text that came from a user (names, values, messages, paths) as data: never a control sequence or a formula.

Each writer adds the escapes of its own language: `as_text` for the terminal, `literal` for figures, `escape`
for LaTeX and Markdown, autoescaping for HTML.
"""

import json
import math
import re
import sys
from contextlib import nullcontext
from typing import Any

# Control characters, line and paragraph separators, marks that reverse the direction of the text around
# them, and code points that UTF-8 or XML cannot hold.
_UNPRINTABLE = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff\\ufff9-\\ufffb"
    "\\ud800-\\udfff\\ufffe\\uffff]"
)
MOST_QUOTED = 500
"""How many characters of an error of a user's class are quoted."""

_FORMULA_START = re.compile("['=+\\-@\\t\\n＝＋－＠]")


def printable(text: str, keep: str = "") -> str:
    r"""Spell out what a terminal would obey or a reader could not see: an escape character becomes `\x1b`.

    Parameters
    ----------
    text : str
    keep : str
        Characters to leave as they are.
    """
    return _UNPRINTABLE.sub(lambda match: match[0] if match[0] in keep else _spelled(match[0]), text)


def printable_lines(text: str) -> str:
    """Spell out all that is unprintable but the ends of lines."""
    return printable(text, keep="\n")


def spreadsheet_text(value: Any) -> Any:
    """Return a value of a CSV file; an apostrophe precedes a text that a spreadsheet would run as a formula.

    One precedes a text that starts with an apostrophe itself, too: without the first apostrophe it is the
    text it was. Numbers stay numbers: they are no texts.
    """
    if not isinstance(value, str):
        return value
    text = printable(value, keep="\t\n")
    return f"'{text}" if _FORMULA_START.match(text) else text


def json_text(value: Any) -> str:
    """Return JSON that keeps letters of all scripts readable and spells out what is unprintable."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _UNPRINTABLE.sub(lambda match: json.dumps(match[0])[1:-1], text)


def _spelled(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def one_line(value: Any, most: int = 400) -> str:
    """Return the text of anything, an error for example, on one line that is not longer than `most`."""
    try:
        text = str(value)[: 8 * most]
        text = printable(" ".join(text.split()))
    except BaseException:  # a __str__ that fails, or exits
        text = f"a {type(value).__name__} that has no text"
    return text if len(text) <= most else f"{text[: most - 1]}…"


def error_line(error: BaseException) -> str:
    """Return an error's class and, where it has one, its text, on one line."""
    text = one_line(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def shown(value: Any, most: int = 60) -> str:
    """Return the representation of anything, on one line that is not longer than `most`."""
    numpy = sys.modules.get("numpy")  # without it no value is one of its scalars
    try:
        # 0.0 rather than np.float64(0.0)
        with numpy.printoptions(legacy="1.25") if numpy else nullcontext():
            text = repr(value)
    except BaseException:  # a __repr__ that fails, or exits
        text = f"a {type(value).__name__} that has no text"
    return one_line(text, most)


def format_memory(size: float) -> str:
    """Write a number of bytes in binary units, with at most three digits: `2 GiB`, `512 MiB`."""
    if size < 2**30:
        return f"{size / 2**20:.3g} MiB"
    return f"{size / 2**30:.3g} GiB"


def format_seconds(seconds: float) -> str:
    """Write a duration as a person would: `12 s`, `3 min 20 s`, `2 h 5 min`."""
    if not math.isfinite(seconds):
        return "an unknown time"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"
