"""Cache of audits, beside the prepared dataset: an audit is computed once for a dataset and its splits.

Names of the cache files begin with a dot, because workers do not need them.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from orchestrator.datasets.audit import Audit, Rows, audit
from orchestrator.datasets.converted import code_digest
from orchestrator.datasets.dataset import Dataset
from orchestrator.datasets.finding import Finding
from orchestrator.study.atomic import atomic_write
from orchestrator.study.values import digest


def cached_audit(
    folder: Path, dataset: Dataset, splits: Iterable[tuple[Rows, Rows]] = (), split_hash: str = "none"
) -> Audit:
    """Return the audit of a prepared dataset, from the cache if it is there.

    Parameters
    ----------
    folder : Path
        Folder of the prepared dataset.
    dataset : Dataset
        Prepared dataset. A cached audit is used only if it has the same fingerprint.
    splits : iterable of (train, test)
        Row indices of each split; none by default.
    split_hash : str
        Identifier of the splits; "none" by default.
    """
    path = folder / f".audit-{split_hash[:16]}.json"
    known = {"fingerprint": dataset.fingerprint, "split_hash": split_hash, "code": code_digest()}
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        stored = json.loads(path.read_text(encoding="utf-8"))
        is_intact = stored.pop("checksum") == digest(stored)
        if is_intact and all(stored[name] == value for name, value in known.items()):
            return _audit_of(stored["audit"])
    found = audit(dataset, splits)
    with suppress(OSError), atomic_write(path) as file:  # the cache may be read-only
        content = json.loads(json.dumps(known | {"audit": asdict(found)}))
        file.write(json.dumps(content | {"checksum": digest(content)}).encode())
    return found


def _audit_of(stored: dict[str, Any]) -> Audit:
    """Return the audit that JSON values describe.

    Parameters
    ----------
    stored : dict
        Attributes of the audit, with lists in place of tuples.
    """
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
    }
    values["columns"] = tuple(Finding(**each) for each in values["columns"])
    return Audit(**values)
