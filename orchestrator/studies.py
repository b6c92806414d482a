"""The way in from Python: a study's tables by its name."""

from pathlib import Path

from orchestrator.results import StudyResults
from orchestrator.store import Store, StoreError


def load_study(name: str, results: str | Path = "results") -> StudyResults:
    """Read a study's tables.

    Parameters
    ----------
    name : str
        The study's name.
    results : path
        The folder of studies, `paths.results`.

    Returns
    -------
    StudyResults
        With the frames `trials`, `selections` and `outer`, and the runs' `provenance`.

    Raises
    ------
    StoreError
        When there is no such study, or a newer version of svmbench wrote it.
    """
    folder = Path(results) / name
    if not (folder / "trials").is_dir():
        known = sorted(path.parent.name for path in Path(results).glob("*/trials"))
        found = f"it holds {', '.join(known)}" if known else "it holds no study yet"
        raise StoreError(
            f"no study {name!r} in {Path(results)}; {found}. Run one with: svmbench run study={name} …"
        )
    return Store(folder).results()
