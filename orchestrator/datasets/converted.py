"""Records that map a data file to its prepared copy, so that the file need not be read again.

A file is identified by its content, the loader, its arguments, and the code of this package. Records are in
the cache, beside the copies.
"""

import hashlib
import json
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from orchestrator.datasets.about import available_path
from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.download import sha256_of
from orchestrator.datasets.files import file_problem
from orchestrator.datasets.memory import memory_limit
from orchestrator.datasets.metadata import NAMES
from orchestrator.datasets.openml_files import openml_of
from orchestrator.datasets.prepared import META, open_prepared
from orchestrator.study.atomic import atomic_write
from orchestrator.study.study import DatasetSpec

_FOLDER = ".converted"
_LIBRARIES = ("numpy", "pandas", "pyarrow", "scikit-learn", "scipy")


def source_key(spec: DatasetSpec) -> str:
    """Return a hash of a dataset's file and of the way it is read.

    The key is empty if the dataset is not read from a single file by a loader of this package. It is also
    empty for a file larger than the memory limit, because loading it will fail.

    Parameters
    ----------
    spec : DatasetSpec
        Dataset of the configuration.
    """
    node = {"_target_": spec.target, **spec.params}
    path = available_path(node)
    if not spec.target.startswith("orchestrator.datasets.") or path is None or file_problem(path):
        return ""
    if any(isinstance(spec.params.get(name), str) for name in NAMES):  # may name a second file
        return ""
    try:
        if path.stat().st_size > memory_limit():
            return ""
        content = sha256_of(path)
        if openml_of(node):  # its description is in a second file
            content += sha256_of(path.with_suffix(".json"))
        params = {name: value for name, value in spec.params.items() if name not in ("folder", "path")}
        how = json.dumps([spec.name, spec.target, params, path.name, code_digest()], sort_keys=True)
    except (OSError, TypeError, ValueError):
        return ""
    return hashlib.sha256(f"{content} {how}".encode()).hexdigest()


def converted(key: str, cache_dir: Path) -> Path | None:
    """Return the folder of the copy that was prepared from a source; None if it is missing or damaged.

    Parameters
    ----------
    key : str
        Key of the source; see `source_key`.
    cache_dir : Path
        Folder of prepared copies.
    """
    try:
        name, meta = (cache_dir / _FOLDER / key).read_text(encoding="utf-8").split("\n")
        folder = cache_dir / name
        if meta != _digest_of_meta(folder):
            return None
        open_prepared(folder)
    except (OSError, ValueError, DatasetError):
        return None
    return folder


def record_converted(key: str, folder: Path) -> None:
    """Record the prepared copy of a source; do nothing if the cache is not writable.

    Parameters
    ----------
    key : str
        Key of the source; see `source_key`.
    folder : Path
        Folder of the prepared copy.
    """
    records = folder.parent / _FOLDER
    with suppress(OSError):
        records.mkdir(exist_ok=True)
        with atomic_write(records / key) as file:
            file.write(f"{folder.name}\n{_digest_of_meta(folder)}".encode())


def _digest_of_meta(folder: Path) -> str:
    """Return the hash of a copy's names and types, which the fingerprint of the content omits.

    Parameters
    ----------
    folder : Path
        Folder of the prepared copy.
    """
    return hashlib.sha256((folder / META).read_bytes()).hexdigest()


@cache
def code_digest() -> str:
    """Return a hash of the code and the library versions that read and check data."""
    digest = hashlib.sha256(repr([version(name) for name in _LIBRARIES]).encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
