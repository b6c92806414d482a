"""The sections of our reports, one file each: its rows, table, figure, captions and title.

A file holds a function `section` from the study, as `orchestrator.analysis.findings.analyse` returns it, to a
`Section`; `orchestrator.report.contents` lists the functions in the order of the page.
"""
