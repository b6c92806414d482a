from tests.figures import _figures_where_they_are_looked_at, _no_figures_of_shared_studies  # noqa: F401
