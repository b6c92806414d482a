"""Detect code that was edited after this process had imported it.

Trial keys depend on the source files on disk, but Python runs the code that it imported. After an edit, rows
would be stored under keys of code that did not produce them.
"""

import hashlib
from pathlib import Path

from orchestrator.study.errors import ConfigError
from orchestrator.study.preparation import Preparation
from orchestrator.study.study import Study
from orchestrator.training.metrics import metric_targets
from orchestrator.training.source_hash import source_files

_first_seen: dict[Path, str] = {}


def study_targets(study: Study) -> set[str]:
    """Return the dotted paths of all classes and functions of a study's solvers, preparations and metrics.

    Parameters
    ----------
    study : Study
        The study, whose arms and custom metrics are inspected.

    Returns
    -------
    set of str
        Dotted import paths, such as `sklearn.svm.SVC`.
    """
    targets = {target for metric in study.protocol.custom_metrics for target in metric_targets(metric)}
    prepared = [study.protocol.preparation, *(Preparation(arm.prepare) for arm in study.arms)]
    targets |= {target for preparation in prepared for target in preparation.targets}
    return targets | {target for arm in study.arms for target in arm.targets}


def require_as_imported(study: Study) -> None:
    """Raise if code of a study has changed since this process first prepared a study with it.

    Parameters
    ----------
    study : Study
        The study, whose solvers' and metrics' source files are compared.

    Raises
    ------
    ConfigError
        If a file has changed. The error names each file.
    """
    files = {path for target in study_targets(study) for path in source_files(target)}
    found = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files)}
    edited = [path for path, digest in found.items() if _first_seen.setdefault(path, digest) != digest]
    if edited:
        raise ConfigError(
            [
                f"{path} was edited after this Python process had imported it, so the old code would run. "
                "Restart Python (in a notebook, the kernel)"
                for path in edited
            ]
        )
