"""Tables for papers: LaTeX with booktabs."""

from collections.abc import Iterable

from orchestrator.report.printed import Cell, Table

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "±": r"$\pm$",
    "−": r"$-$",
    "×": r"$\times$",
    "–": "--",
    "†": r"\dag{}",
    "⁺": r"$^{+}$",
    "⁻": r"$^{-}$",
    "ⁿ": r"$^{n}$",
    "σ": r"$\sigma$",
    "√": r"$\surd$",
    "∈": r"$\in$",
    "…": r"\dots{}",
    "“": "``",
    "”": "''",
    "η": r"$\eta$",
    "γ": r"$\gamma$",
}


def latex(table: Table) -> str:
    r"""Return a table as a `tabular` in a `table`, with its caption and the label `tab:<name>`.

    The document needs `\usepackage{booktabs}`, and a Unicode engine or `inputenc` for names beyond ASCII.
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
    """Escape what LaTeX would not print as it stands."""
    return "".join(_ESCAPES.get(character, character) for character in " ".join(text.split()))


def _cell(cell: Cell) -> str:
    return rf"\textbf{{{escape(cell.text)}}}" if cell.strong else escape(cell.text)


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
