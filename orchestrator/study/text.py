"""Safe output of text from users (names, values, messages, paths): no control sequences and no formulas.

Each writer adds the escapes of its language: `as_text` for the terminal, `literal` for figures, `escape` for
LaTeX and Markdown, autoescaping for HTML.
"""

import json
import math
import re
import sys
import traceback
from contextlib import nullcontext
from typing import Any

# Control characters, line and paragraph separators, marks that reverse the direction of the text around
# them, and code points that UTF-8 or XML cannot hold.
_UNPRINTABLE = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff\\ufff9-\\ufffb"
    "\\ud800-\\udfff\\ufffe\\uffff]"
)
MAX_QUOTED = 500
"""Longest quotation of an error of a user's class, in characters."""

_FORMULA_START = re.compile("['=+\\-@\\t\\n＝＋－＠]")


def printable(text: str, keep: str = "") -> str:
    r"""Escape characters that control a terminal or are invisible: an escape character becomes `\x1b`.

    Parameters
    ----------
    text : str
        Any text.
    keep : str
        Characters that are not escaped. Default: none.
    """
    return _UNPRINTABLE.sub(lambda match: match[0] if match[0] in keep else _spelled(match[0]), text)


def printable_lines(text: str) -> str:
    """Escape unprintable characters, except for line feeds.

    Parameters
    ----------
    text : str
        Any text.
    """
    return printable(text, keep="\n")


def spreadsheet_text(value: Any) -> Any:
    """Return a value for a CSV file that no spreadsheet reads as a formula.

    A text that looks like a formula gets an apostrophe before it, and so does a text that starts with an
    apostrophe. So removing the first apostrophe always restores the text. Only texts are changed.

    Parameters
    ----------
    value : object
        Value of a cell.
    """
    if not isinstance(value, str):
        return value
    text = printable(value, keep="\t\n")
    return f"'{text}" if _FORMULA_START.match(text) else text


def json_text(value: Any) -> str:
    """Return JSON in which letters of all scripts stay readable and unprintable characters are escaped.

    Parameters
    ----------
    value : object
        Value that JSON can express, without NaN and infinity.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _UNPRINTABLE.sub(lambda match: json.dumps(match[0])[1:-1], text)


def _spelled(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def one_line(value: Any, most: int = 400) -> str:
    """Return the text of a value, for example of an error, on one line.

    Parameters
    ----------
    value : object
        Any value. A fixed text replaces it if its `__str__` raises.
    most : int
        Longest line, in characters. Default 400.
    """
    try:
        text = str(value)[: 8 * most]
        text = printable(" ".join(text.split()))
    except BaseException:  # a __str__ that fails, or exits
        text = f"a {type(value).__name__} that has no text"
    return text if len(text) <= most else f"{text[: most - 1]}…"


def error_line(error: BaseException) -> str:
    """Return the class of an error and its message, if it has one, on one line.

    Parameters
    ----------
    error : BaseException
        Error to quote.
    """
    text = one_line(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def quoted(text: str) -> str:
    """Return a text in single quotes, as the grammar of overrides reads it.

    A backslash is doubled only before a quote, because the grammar reads all others as they are.

    Parameters
    ----------
    text : str
        Any text on one line.
    """
    return "'" + re.sub(r"(\\*)('|$)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), text) + "'"


class _Word:
    """Value whose representation is a word of YAML.

    Parameters
    ----------
    text : str
        The word.
    """

    def __init__(self, text: str):
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _in_yaml(value: Any) -> Any:
    """Return a value in which None, True and False are represented as YAML spells them.

    Parameters
    ----------
    value : object
        Any value.
    """
    if value is None:
        return _Word("null")
    if isinstance(value, bool):
        return _Word("true" if value else "false")
    if type(value) in (list, tuple):
        return type(value)(map(_in_yaml, value))
    if type(value) is dict:
        return {_in_yaml(key): _in_yaml(each) for key, each in value.items()}
    return value


def shown(value: Any, most: int = 60) -> str:
    """Return the representation of a configured value on one line, with YAML's words null, true and false.

    Parameters
    ----------
    value : object
        Any value. A fixed text replaces it if its `__repr__` raises.
    most : int
        Longest line, in characters. Default 60.
    """
    try:
        return represented(_in_yaml(value), most)
    except RecursionError:  # a list that contains itself
        return represented(value, most)


def represented(value: Any, most: int = 60) -> str:
    """Return the representation of a value of Python on one line.

    Parameters
    ----------
    value : object
        Any value. A fixed text replaces it if its `__repr__` raises.
    most : int
        Longest line, in characters. Default 60.
    """
    numpy = sys.modules.get("numpy")  # if NumPy is not imported, no value is a NumPy scalar
    try:
        # 0.0 rather than np.float64(0.0)
        with numpy.printoptions(legacy="1.25") if numpy else nullcontext():
            text = repr(value)
    except BaseException:  # a __repr__ that fails, or exits
        text = f"a {type(value).__name__} that has no text"
    return one_line(text, most)


def format_memory(size: float) -> str:
    """Format a number of bytes in binary units with at most three digits: `2 GiB`, `512 MiB`.

    Parameters
    ----------
    size : float
        Number of bytes.
    """
    if size >= 1e15:
        return "more than a million GiB"
    if size < 2**30:
        return f"{size / 2**20:.3g} MiB"
    return f"{size / 2**30:.3g} GiB"


def plural(number: int, noun: str) -> str:
    """Print a number with its noun.

    Parameters
    ----------
    number : int
        Number of objects.
    noun : str
        An English noun in the singular.
    """
    return f"{number:,} {noun if number == 1 else plural_of(noun)}"


def plural_of(noun: str) -> str:
    """Return the plural of a regular noun.

    Parameters
    ----------
    noun : str
        An English noun in the singular.
    """
    return f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"


def format_share(share: float, decimals: int = 0) -> str:
    """Format a share of a whole in per cent, for example '6.2 %'.

    Parameters
    ----------
    share : float
        Share, from 0 to 1.
    decimals : int
        Number of decimals. Default 0.
    """
    return f"{100 * share:.{decimals}f} %"


def format_seconds(seconds: float) -> str:
    """Format a duration for a reader: `12 s`, `3 min 20 s`, `2 h 5 min`.

    Parameters
    ----------
    seconds : float
        Duration in seconds. If it is not finite, the text says that the time is unknown.
    """
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


# -- texts of rows ---------------------------------------------------------------------------------


TEXT_BYTES = 4096
"""Longest text in a row, in bytes of UTF-8."""


_NOTICE_BYTES = 48
"""Bytes reserved for the notice at the end of a shortened text."""


def storable_text(value: Any, most: int | None = TEXT_BYTES) -> str:
    """Return the text of a value; a fixed text replaces it if the value's class raises.

    Parameters
    ----------
    value : object
        Any value.
    most : int or None
        Longest text to keep, in bytes of UTF-8. A longer text is shortened and ends with the number of
        missing characters. None keeps all. Default 4096.

    Returns
    -------
    str
        Text in which code points that UTF-8 cannot encode are escaped.
    """
    try:
        text = str.__str__(value if isinstance(value, str) else str(value))
    except BaseException:  # a custom `__str__` may raise any exception
        return "(its text cannot be read)"
    if most is None:
        return _encoded(text).decode("utf-8")
    head = _encoded(text[: most + 1])
    if len(head) <= most and len(text) <= most:
        return head.decode("utf-8")
    kept = head[: most - _NOTICE_BYTES].decode("utf-8", "ignore")
    return f"{kept} … ({len(text) - len(kept):,} more characters)"


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def error_text(error: BaseException) -> str:
    """Return the message of an error on one line.

    Parameters
    ----------
    error : BaseException
        Error to quote. A message of more than 3,596 bytes is shortened.
    """
    return " ".join(storable_text(error, TEXT_BYTES - 500).split())


def describe_error(error: BaseException) -> str:
    """Return the class and message of an error, and the line of code that raised it, on one line.

    Parameters
    ----------
    error : BaseException
        Error that was raised.
    """
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno})" if frames else ""
    name = storable_text(type(error).__name__, 200)
    return f"{name}: {error_text(error)}{storable_text(where, 300)}"
