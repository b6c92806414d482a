"""Claims of the literature: their tests on stored studies, their page, and their section of a report."""
