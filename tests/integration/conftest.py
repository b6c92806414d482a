from tests.figures import (  # noqa: F401
    _figures_where_they_are_looked_at,
    _no_figures_of_shared_studies,
    no_pages,
)
