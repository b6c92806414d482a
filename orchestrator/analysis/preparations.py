"""What was done to the columns of each dataset before a solver saw them."""

from typing import TYPE_CHECKING, Any

from orchestrator.store.results import StudyResults

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("dataset", "solver", "preparation", "column", "steps")


def preparation_of(results: StudyResults) -> "pd.DataFrame":
    """Return what the preparation of each dataset × arm does to which column.

    The newest run that recorded a dataset × arm counts. The steps are those of the first outer split.

    Parameters
    ----------
    results : StudyResults
        Results of a study.

    Returns
    -------
    DataFrame
        Columns `COLUMNS`. A preparation that treats all columns alike has one row with an empty `column`, and
        its description as `steps`. Empty for studies of versions without preparations.
    """
    import pandas as pd

    found: dict[tuple[str, str], Any] = {}
    for run in results.provenance:
        for entry in run.get("prepared_columns") or ():
            found |= {(entry["dataset"], solver): entry for solver in entry["solvers"]}
    rows = [
        (*pair, entry["words"], column, steps)
        for pair, entry in found.items()
        for column, steps in entry["columns"] or [("", entry["words"])]
    ]
    return pd.DataFrame(rows, columns=[*COLUMNS])
