import pytest


@pytest.fixture(autouse=True)
def _figures_where_they_are_looked_at(request, monkeypatch):
    """Draw the figures that a test's marker `figures` names, or all; PDFs only with `pdf=True`.

    Figures take most of the time of a report, and the fonts of PDFs more than a third of that. `make check`
    draws all figures of every marked test, also of those with `figures(sample=False)`.
    """
    marker, is_full = request.node.get_closest_marker("figures"), request.config.getoption("--full")
    options = marker.kwargs if marker else {}
    if marker is None or not (is_full or options.get("sample", True)):
        monkeypatch.setattr("orchestrator.report.contents.drawn_figures", lambda sections, pdf: {})
    elif marker.args and not is_full:
        monkeypatch.setattr("orchestrator.report.contents.drawn_figures", _drawing_only(marker.args))
    if not options.get("pdf"):
        monkeypatch.setattr("orchestrator.report.figures.HIGHEST_PDF", 0.0)


def _drawing_only(names):
    """Return a function that draws the figures of some names."""

    def drawn_figures(sections, pdf):
        from orchestrator.report.figures import documents

        drawings = [drawing for section in sections for drawing in section.drawings]
        return {drawing.name: documents(drawing, pdf) for drawing in drawings if drawing.name in names}

    return drawn_figures
