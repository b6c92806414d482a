"""Tables for papers: LaTeX with booktabs."""

import re
from collections.abc import Iterable

from orchestrator.report.table import Cell, Table
from orchestrator.study.text import printable

_ESCAPES = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    '"': r"{\char34}",
    "±": r"$\pm$",
    "−": r"$-$",
    "×": r"$\times$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "∞": r"$\infty$",
    "·": r"$\cdot$",
    "–": r"\textendash{}",
    "‡": r"\ddag{}",
    "⁺": r"$^{+}$",
    "⁻": r"$^{-}$",
    "ⁿ": r"$^{n}$",
    "χ": r"$\chi$",
    **{digit: f"$^{{{number}}}$" for number, digit in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    "σ": r"$\sigma$",
    "τ": r"$\tau$",
    "µ": r"$\mu$",
    "√": r"$\surd$",
    "∈": r"$\in$",
    "…": r"\dots{}",
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
    "η": r"$\eta$",
    "γ": r"$\gamma$",
}

_TRANSLATION = str.maketrans(_ESCAPES)


def latex(table: Table) -> str:
    r"""Return a table as a `tabular` in a `table`, with its caption and the label `tab:<name>`.

    The document needs `\usepackage{booktabs}`, and a Unicode engine or `inputenc` for names beyond ASCII.

    Parameters
    ----------
    table : Table
        Printed cells with a header, a caption and a name.
    """
    columns = "".join("l" if table.is_text(i) else "r" for i in range(len(table.header)))
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(table.title)}. {escape(table.caption)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
        r"\toprule",
        _line(escape(text) for text in table.header),
        r"\midrule",
        *(_line(_cell(cell) for cell in row) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Escape the characters that LaTeX interprets.

    Parameters
    ----------
    text : str
        Any text.
    """
    line = re.sub(r"[ \t\n]+", " ", printable(text, keep="\n\t")).strip()
    # Two of these in a row would become one dash or quotation mark.
    pieces = re.split(r"(?<=([-,']))(?=\1)", line)
    escaped = "{}".join(piece.translate(_TRANSLATION) for piece in pieces[::2])
    # A bracket or an asterisk would be read as an argument of the end of the row before it.
    return "{}" + escaped if escaped.startswith(("[", "*")) else escaped


def _cell(cell: Cell) -> str:
    return rf"\textbf{{{escape(cell.text)}}}" if cell.strong else escape(cell.text)


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
