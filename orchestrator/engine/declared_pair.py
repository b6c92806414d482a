"""The declaration of a stored study, and the identity of one of its dataset × arm, to train it again."""

from orchestrator.store.files import StoreError
from orchestrator.store.results import StudyResults
from orchestrator.study.declaration import Declaration, current_declaration
from orchestrator.study.trials import Identity


def declared_pair(results: StudyResults, dataset: str, arm: str) -> tuple[Declaration, Identity]:
    """Return the current declaration of a study, and the identity of a dataset × arm.

    Parameters
    ----------
    results : StudyResults
        The results of the study.
    dataset : str
        Name of the dataset.
    arm : str
        Name of the arm.

    Raises
    ------
    StoreError
        If the study does not declare this arm on this dataset, or an older version did not record all inputs
        of its trials.
    """
    declaration = results.declaration or current_declaration(results.provenance)
    declared = None if declaration is None else declaration.pairs.get((dataset, arm))
    if declaration is None or declared is None or declared.identity is None:
        raise StoreError(
            f"study {results.name!r} does not declare arm {arm!r} on dataset {dataset!r}, or an older "
            "version recorded it without its identity. Choose a declared pair, or run the study again"
        )
    return declaration, declared.identity
