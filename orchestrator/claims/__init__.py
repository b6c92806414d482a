"""Claims of the literature: their tests against stored studies, their page and their section of a report."""
