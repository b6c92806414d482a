"""The grammar of ARFF, line by line: attributes, quoted values, sparse rows and weights.

A value is bare, or in single or double quotes with escapes in it. Commas separate values. Tabs and spaces
also separate them if a line would have too few values otherwise. `%` starts a comment where a value may
start; within a bare value it is text.
"""

import re
from typing import NamedTuple

from orchestrator.study.text import shown

MISSING = ("?", "<null>")
"""Bare values that denote a missing value; in quotes they are text."""

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
SPACE = "".join(map(chr, range(1, 33)))
"""Characters that separate values: ASCII control characters and the space, not all Unicode spaces."""

_TOKEN = re.compile(
    r"""[\x01-\x20]*(?:(?P<single>'(?:[^'\\]|\\.)*')|(?P<double>"(?:[^"\\]|\\.)*")"""
    r"""|(?P<comment>%.*)|(?P<mark>[,{}])|(?P<word>[^\x01-\x20,{}%][^\x01-\x20,{}]*))""",
    re.DOTALL,
)
_NAME = re.compile(
    r"""@attribute[\x01-\x20]+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\x01-\x20{'"][^\x01-\x20{]*)""",
    re.IGNORECASE | re.DOTALL,
)
_SPECIAL = re.compile(r"""['"%{}]""")
_WEIGHT = re.compile(r"[0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?|\.[0-9]+")


class Broken(Exception):
    """Syntax error of a file; the caller puts the file's name before its message.

    Parameters
    ----------
    line : int
        Line number, from 1.
    problem : str
        Text of the message: found and expected content.
    """

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f", line {line}: {problem}; correct the file, or fetch it again")


class Line(NamedTuple):
    """Line of a file.

    Attributes
    ----------
    number : int
        Line number, from 1.
    text : str
        Content without surrounding space.
    """

    number: int
    text: str


class Attribute(NamedTuple):
    """Declaration of a column.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : {"number", "nominal", "string", "date"}
        Type of its values.
    values : list of str
        Declared values of a nominal attribute; empty for other kinds.
    line : int
        Line of the declaration.
    """

    name: str
    kind: str
    values: list[str]
    line: int


class _Token(NamedTuple):
    """Part of a line: a comma, a brace, a word, or the content of quotes.

    Attributes
    ----------
    text : str
        Content, without quotes and with escapes decoded.
    is_quoted : bool
        Whether it was in quotes.
    start, end : int
        Position in the line.
    """

    text: str
    is_quoted: bool
    start: int
    end: int

    @property
    def is_mark(self) -> bool:
        """Whether the token is an unquoted comma or brace."""
        return not self.is_quoted and self.text in (",", "{", "}")


Value = str | None
"""Text of a value; None if it is missing."""


def attribute_of(line: Line) -> Attribute:
    """Parse a line with `@attribute` and return its declaration.

    Parameters
    ----------
    line : Line
        Line of the header.

    Raises
    ------
    Broken
        If the line is not a declaration, or its type is not supported.
    """
    number, text = line
    found = _NAME.match(text)
    tokens = _tokens(line, found.end()) if found else []
    if not found or not tokens:
        raise Broken(number, f"expected '@attribute name type', found {shown(text)}")
    name, kind = found[1], tokens[0]
    if name[0] in "'\"":
        name = _unescaped(name[1:-1])
    if kind.is_mark and kind.text == "{":
        close = next((at for at, token in enumerate(tokens) if token.is_mark and token.text == "}"), None)
        if close is None:
            raise Broken(number, f"expected the values of {name!r} up to a brace, found {shown(text)}")
        values = _values(line, tokens[1:close], None)
        _require_end(line, tokens[close].end, tokens[-1].end, name)
        return Attribute(name, "nominal", [*dict.fromkeys(str(value.text) for value in values)], number)
    word = kind.text.partition("[")[0].lower()  # KEEL writes a range after a type, as `real[0, 9]`
    kinds = {"numeric": "number", "real": "number", "integer": "number", "string": "string", "date": "date"}
    if word not in kinds:
        found_type = shown(kind.text)
        raise Broken(
            number, f"expected numeric, string or {{values}} as the type of {name!r}, found {found_type}"
        )
    if word != "date":
        _require_end(line, kind.start + len(word), tokens[-1].end, name)
    return Attribute(name, kinds[word], [], number)


def _require_end(line: Line, start: int, end: int, name: str) -> None:
    """Raise if a type is followed by text other than a range (KEEL) or a weight (Weka).

    A range is written as `[0, 9]`, a weight as `{2.0}`.

    Parameters
    ----------
    line : Line
        Declaration of an attribute, read up to the end of its type.
    start, end : int
        Part of the line after the type.
    name : str
        Name of the attribute, for the message.
    """
    text = line.text[start:end].strip(SPACE)
    if text and not re.fullmatch(r"\[[^\]]*\]|\{\s*[0-9.eE+-]+\s*\}", text):
        raise Broken(line.number, f"expected nothing after the type of {name!r}, found {shown(text)}")


class Row(NamedTuple):
    """Values of a row.

    Attributes
    ----------
    number : int
        Line number.
    values : list of (str or None)
        Values; a sparse row has only those that it names.
    at : list of int or None
        Indices of the attributes of a sparse row; None for a dense row.
    is_weighted : bool
        Whether the row ends with a weight.
    """

    number: int
    values: list[Value]
    at: list[int] | None
    is_weighted: bool


def row_of(line: Line, width: int) -> Row | None:
    """Parse a line after `@data` and return its row; None for a line with only a comment.

    Parameters
    ----------
    line : Line
        Line of data.
    width : int
        Number of attributes.

    Raises
    ------
    Broken
        If the line is neither a dense row with a value for each attribute nor a sparse row.
    """
    number, text = line
    if not _SPECIAL.search(text) and text.count(",") == width - 1:
        return Row(number, _bare_values(line), None, False)
    tokens = _tokens(line)
    if not tokens:
        return None
    tokens, is_weighted = _without_weight(line, tokens)
    if tokens and tokens[0].is_mark and tokens[0].text == "{":
        at, values = _sparse(line, tokens, width)
        return Row(number, values, at, is_weighted)
    found = _values(line, tokens, width)
    return Row(number, [_value(token) for token in found], None, is_weighted)


def _bare_values(line: Line) -> list[Value]:
    """Return the values of a line without quotes, braces and comments.

    Parameters
    ----------
    line : Line
        Line of data.
    """
    values = [value.strip(SPACE) for value in line.text.split(",")]
    if "" in values:
        _split(line, _tokens(line))  # raises with the position of the empty value
    if "?" in line.text or "<null>" in line.text:
        return [None if value in MISSING else value for value in values]
    return [*values]


def _value(token: _Token) -> Value:
    """Return the text of a token; None if it denotes a missing value.

    Parameters
    ----------
    token : _Token
        Token of a value.
    """
    return None if not token.is_quoted and token.text in MISSING else token.text


def _without_weight(line: Line, tokens: list[_Token]) -> tuple[list[_Token], bool]:
    """Return the tokens of a row without a weight in braces at its end, and whether it has one.

    Parameters
    ----------
    line : Line
        Line of data.
    tokens : list of _Token
        Words and punctuation of one row, in order.
    """
    braces = [at for at, token in enumerate(tokens) if token.is_mark and token.text == "{"]
    if not braces or braces[-1] == 0:
        return tokens, False
    last = tokens[braces[-1] :]
    if len(last) != 3 or not last[2].is_mark or not _WEIGHT.fullmatch(last[1].text):
        found = shown(line.text[last[0].start :])
        raise Broken(line.number, f"expected a weight in braces such as {{2}} at the end, found {found}")
    before = tokens[: braces[-1]]
    return (before[:-1] if before[-1].is_mark and before[-1].text == "," else before), True


def _sparse(line: Line, tokens: list[_Token], width: int) -> tuple[list[int], list[Value]]:
    """Parse a sparse row and return the indices of its attributes and their values.

    Parameters
    ----------
    line : Line
        Line of data.
    tokens : list of _Token
        Its tokens, braces included.
    width : int
        Number of attributes.
    """
    number = line.number
    closing = [at for at, token in enumerate(tokens) if token.is_mark and token.text == "}"]
    if closing != [len(tokens) - 1]:
        raise Broken(number, f"expected a sparse row such as {{0 1.5, 3 red}}, found {shown(line.text)}")
    found: dict[int, Value] = {}
    previous = -1
    for pair in _split(line, tokens[1:-1]) if len(tokens) > 2 else []:
        if len(pair) != 2 or pair[0].is_quoted or not re.fullmatch(r"[0-9]{1,9}", pair[0].text):
            what = shown(" ".join(token.text for token in pair))
            raise Broken(number, f"expected the index of an attribute and its value, found {what}")
        at = int(pair[0].text)
        if at >= width:
            raise Broken(number, f"expected indices of attributes from 0 to {width - 1}, found {at}")
        if at <= previous:
            raise Broken(number, f"expected ascending indices of attributes, found {at} after {previous}")
        found[at], previous = _value(pair[1]), at
    return list(found), list(found.values())


def _values(line: Line, tokens: list[_Token], width: int | None) -> list[_Token]:
    """Return the value tokens of a dense row, or of the list that declares a nominal attribute.

    Parameters
    ----------
    line : Line
        Line of the tokens.
    tokens : list of _Token
        Tokens without the enclosing braces.
    width : int or None
        Number of values of a row; None for the list of a declaration.
    """
    number = line.number
    if mark := next((token for token in tokens if token.is_mark and token.text != ","), None):
        raise Broken(number, f"expected values and commas, found {mark.text!r}; put it in quotes")
    if not tokens and width is None:
        raise Broken(number, "expected at least one value in braces, found none")
    parts = _split(line, tokens)
    if width is None:
        parts = parts if len(parts) > 1 else [[token] for token in tokens]
        return [_joined(line, part) for part in parts]
    if len(parts) != width and sum(map(len, parts)) == width:
        return tokens if len(parts) == 1 else [token for part in parts for token in part]
    if len(parts) != width:
        raise Broken(number, f"expected {width} values, found {len(parts)}")
    return [_joined(line, part) for part in parts]


def _split(line: Line, tokens: list[_Token]) -> list[list[_Token]]:
    """Split tokens at commas.

    Parameters
    ----------
    line : Line
        Line of the tokens, for messages.
    tokens : list of _Token
        Tokens, commas included.
    """
    parts: list[list[_Token]] = [[]]
    for token in tokens:
        if token.is_mark and token.text == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    if not all(parts):
        at = next(at for at, part in enumerate(parts) if not part)
        where = "after the last comma" if at == len(parts) - 1 else "between commas"
        raise Broken(
            line.number, f"expected a value {where}, found none; write ? for a missing one, '' for empty text"
        )
    return parts


def _joined(line: Line, part: list[_Token]) -> _Token:
    """Return words separated by spaces as one value, because many files omit quotes.

    Parameters
    ----------
    line : Line
        Line of the tokens.
    part : list of _Token
        Tokens between two commas.
    """
    if len(part) == 1:
        return part[0]
    if any(token.is_quoted for token in part):
        found = shown(line.text[part[0].start : part[-1].end])
        raise Broken(line.number, f"expected a comma between values, found {found}")
    start, end = part[0].start, part[-1].end
    return _Token(line.text[start:end], False, start, end)


def _tokens(line: Line, at: int = 0) -> list[_Token]:
    """Return the tokens of a line, up to a comment.

    Parameters
    ----------
    line : Line
        Line to read.
    at : int
        Position of the first character; 0 by default.
    """
    text, found = line.text, []
    while match := _TOKEN.match(text, at):
        kind = match.lastgroup or ""
        if kind == "comment":
            break
        content = match[kind]
        is_quoted = kind in ("single", "double")
        if kind == "word" and content[0] in "'\"":
            raise Broken(line.number, f"expected a closing quote, found none in {shown(text[at:])}")
        if is_quoted:
            content = _unescaped(content[1:-1])
        found.append(_Token(content, is_quoted, match.start(kind), match.end()))
        at = match.end()
    return found


def _unescaped(text: str) -> str:
    """Return a text with its escapes decoded.

    Parameters
    ----------
    text : str
        Content of quotes.
    """
    return _ESCAPE.sub(lambda match: _character(match[1]), text) if "\\" in text else text


def _character(escape: str) -> str:
    """Return the character that an escape denotes.

    Parameters
    ----------
    escape : str
        Escape without its backslash.
    """
    if escape[0] == "u" and len(escape) == 5:
        return chr(int(escape[1:], 16))
    return chr(int(escape, 8)) if escape[0] in "01234567" else _ESCAPED.get(escape, escape)
