import pytest


@pytest.fixture(autouse=True)
def _figures_where_they_are_looked_at(request, monkeypatch):
    """Draw no figures but for tests marked `figures`: they take most of the time of a report."""
    if not request.node.get_closest_marker("figures"):
        monkeypatch.setattr("orchestrator.report.all_figures.all_figures", lambda findings: {})
