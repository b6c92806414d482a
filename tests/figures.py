"""Figures and pages of reports, which take most of the time of a small study, for tests that look at them."""

from contextlib import contextmanager

import pytest

from orchestrator.report import contents
from tests.preloaded import DRAWS_NOTHING

_drawn_figures = contents.drawn_figures


@pytest.fixture(scope="module", autouse=True)
def _no_figures_of_shared_studies():
    """Draw nothing for fixtures that several tests share; those that need figures use `all_figures`."""
    with pytest.MonkeyPatch.context() as patch:
        _draw(patch, ())
        yield


@pytest.fixture(scope="module")
def no_pages(request):
    """Have runs in this process write no pages of their studies, for modules that never look at these.

    A page takes half of the time of a small run. `make check` writes all pages.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not request.config.getoption("--full"):
            patch.setattr("orchestrator.cli.run.write_report", lambda *arguments, **options: None)
        yield


@pytest.fixture(autouse=True)
def _figures_where_they_are_looked_at(request, monkeypatch):
    """Draw the figures that a test's marker `figures` names, or all; PDFs only with `pdf=True`.

    Figures take most of the time of a report, and the fonts of PDFs more than a third of that. `make check`
    draws all figures of every marked test, also of those with `figures(sample=False)`.
    """
    marker, is_full = request.node.get_closest_marker("figures"), request.config.getoption("--full")
    options = marker.kwargs if marker else {}
    if marker is None or not (is_full or options.get("sample", True)):
        _draw(monkeypatch, ())
    else:
        _draw(monkeypatch, None if is_full else marker.args or None)
    if not options.get("pdf"):
        monkeypatch.setattr("orchestrator.report.figures.HIGHEST_PDF", 0.0)


@contextmanager
def all_figures():
    """Draw all figures during the block, as SVG and PDF."""
    with pytest.MonkeyPatch.context() as patch:
        _draw(patch, None)
        yield


def _draw(patch, names):
    """Have reports draw the figures of some names, or all for None; forks draw all unless there are none."""
    if names is None:
        patch.setattr(contents, "drawn_figures", _drawn_figures)
    else:
        patch.setattr(contents, "drawn_figures", _drawing_only(names))
    if names == ():
        patch.setenv(DRAWS_NOTHING, "1")
    else:
        patch.delenv(DRAWS_NOTHING, raising=False)


def _drawing_only(names):
    """Return a function that draws the figures of some names."""

    def drawn_figures(sections, pdf):
        from orchestrator.report.figures import documents

        drawings = [drawing for section in sections if names for drawing in section.drawings]
        return {drawing.name: documents(drawing, pdf) for drawing in drawings if drawing.name in names}

    return drawn_figures
