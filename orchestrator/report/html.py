"""The report as one self-contained HTML page."""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report.brief import brief
from orchestrator.report.contents import shown_on_page
from orchestrator.report.latex import latex
from orchestrator.report.printed import PrintedSection
from orchestrator.report.section import Drawn, Part
from orchestrator.report.verdict import IN_SHORT, answers, answers_on_datasets, incomplete_note
from orchestrator.study.text import printable

_LONGEST_WORD = 28


def html(
    study: Findings,
    sections: Sequence[PrintedSection],
    figures: Mapping[str, Drawn],
    reload_seconds: int | None = None,
    files: Sequence[str] = (),
) -> str:
    """Return the page.

    Parameters
    ----------
    study : Findings
        The study of the report.
    sections : sequence of PrintedSection
        Built-in sections and those of users, in the order of the page.
    figures : mapping of str to Drawn
        The figures of all sections by name; the page leaves out a figure that is not among them.
    reload_seconds : int, optional
        Seconds after which the page reloads itself; by default it does not.
    files : sequence of str
        Paths of the files beside the page, which it links, relative to its folder. Default: none.

    Returns
    -------
    str
        The HTML document.
    """
    environment = _environment()
    script = environment.get_template("report.js").render()
    digest = b64encode(sha256(script.encode()).digest()).decode()
    # The page runs only its own script and loads nothing.
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    return environment.get_template("report.html").render(
        study=study,
        is_empty=findings.is_empty(study),
        is_short=bool(findings.dataset_answers(study)),
        files=files,
        script=Markup(script),
        policy=policy,
        reload_seconds=reload_seconds,
        answers=[*answers_on_datasets(study), *answers(study)],
        in_short=(IN_SHORT, [sentence.partition(": ")[::2] for sentence in brief(study)]),
        incomplete=incomplete_note(study),
        sections=shown_on_page(sections, study),
        figures={name: inline(figure.svg, name) for name, figure in figures.items()},
    )


def inline(svg: str, name: str) -> Markup:
    """Return an SVG document as an element whose identifiers are unique in the page.

    Parameters
    ----------
    svg : str
        The SVG document.
    name : str
        Name of the figure, which becomes part of its identifiers.
    """
    element = svg[svg.index("<svg") :]
    element = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', element)
    element = re.sub(r'(href="|url\()#', rf"\1#{name}-", element)
    # Size comes from the page; the view box keeps the proportions.
    element = re.sub(r' (height|width)="[\d.]+pt"', "", element, count=2)
    return Markup(element.replace("<svg", '<svg aria-hidden="true" focusable="false"', 1))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("orchestrator.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"breakable": breakable, "is_long": is_long, "is_tall": is_tall, "latex": latex}
    environment.filters["kind"] = _kind
    return environment


def _kind(part: Part) -> str:
    """Return the name of a part's type, by which the template shows it.

    Parameters
    ----------
    part : Part
        A part of a section.
    """
    return type(part).__name__.lower()


def is_long(text: str) -> bool:
    """Return whether a text has a word that is too long for one line.

    Parameters
    ----------
    text : str
        The text of a cell or a heading.
    """
    return max(map(len, text.split()), default=0) > _LONGEST_WORD


def breakable(text: str) -> Markup:
    """Insert line-break opportunities at separators of a long name.

    Parameters
    ----------
    text : str
        The text of a cell or a heading.
    """
    text = _printable(text)
    if not is_long(text):
        return Markup.escape(text)
    return Markup("<wbr>").join(re.split(r"(?<=[,_\]])|(?=\[)", text))


def _printable(value: Any) -> Any:
    """Spell out the characters that HTML does not allow. Jinja escapes all others.

    Parameters
    ----------
    value : any
        A value that a template prints.
    """
    return printable(value, keep="\n\t") if type(value) is str else value


def is_tall(svg: str) -> bool:
    """Return whether a figure is so tall that the page shows it in a scrolling box.

    Parameters
    ----------
    svg : str
        The SVG element.
    """
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    return box is not None and float(box[2]) > 2 * float(box[1])
