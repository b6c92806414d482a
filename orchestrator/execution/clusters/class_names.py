"""Names of the classes that start the built-in kinds of clusters, without importing them."""

from orchestrator.study.cluster_kinds import CLUSTER_KINDS


def class_of_kind(kind: str) -> str:
    """Return the dotted path of the class of a built-in kind.

    Parameters
    ----------
    kind : str
        Name of the kind, such as `slurm`.
    """
    if CLUSTER_KINDS[kind].in_process:
        return f"orchestrator.execution.{kind}.{kind.capitalize()}Executor"
    return f"{__package__}.{kind}.{kind.capitalize()}"
