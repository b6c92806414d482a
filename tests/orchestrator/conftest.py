import pytest


@pytest.fixture(autouse=True)
def _figures_where_they_are_looked_at(request, monkeypatch):
    """Draw no figures but for tests marked `figures`, as PDF only for `figures("pdf")`.

    They take most of the time of a report, and of that the fonts of the PDF more than a third.
    """
    figures = request.node.get_closest_marker("figures")
    if figures is None:
        monkeypatch.setattr("orchestrator.report.contents.drawn_figures", lambda sections: {})
    elif "pdf" not in figures.args:
        monkeypatch.setattr("orchestrator.report.figures.HIGHEST_PDF", 0.0)
