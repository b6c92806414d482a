"""Code that was edited after this process had imported it.

Its keys follow from the files as they are, and what runs is what was imported: such rows would be false.
"""

import hashlib
from pathlib import Path

from orchestrator.study.errors import ConfigError
from orchestrator.study.study import Study
from orchestrator.training.metrics import metric_targets
from orchestrator.training.source_hash import source_files

_first_seen: dict[Path, str] = {}


def study_targets(study: Study) -> set[str]:
    """Return the dotted paths of all classes and functions of a study's solvers and metrics."""
    targets = {target for metric in study.protocol.own_metrics for target in metric_targets(metric)}
    return targets | {target for arm in study.arms for target in arm.targets}


def require_as_imported(study: Study) -> None:
    """Refuse a study whose code has changed since an earlier study of this process.

    Raises
    ------
    ConfigError
        Naming each file.
    """
    files = {path for target in study_targets(study) for path in source_files(target)}
    found = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files)}
    edited = [path for path, digest in found.items() if _first_seen.setdefault(path, digest) != digest]
    if edited:
        raise ConfigError(
            [
                f"{path} was edited after this Python process had imported it, and the old code would run; "
                "restart Python (in a notebook, the kernel)"
                for path in edited
            ]
        )
