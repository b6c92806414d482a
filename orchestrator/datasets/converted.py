"""Which prepared copy a file of data was made into, so that the file need not be read again.

A file is known by its content, and by what it is read with: the loader, its arguments and our code. Records
lie in the cache, beside the copies.
"""

import hashlib
import json
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from orchestrator.datasets.about import path_at_hand
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
    """Return what stands for a dataset's file and how it is read.

    Empty if we do not read a single file, or one that is larger than the memory it may take: it will be
    refused, and need not be hashed for it.
    """
    node = {"_target_": spec.target, **spec.params}
    path = path_at_hand(node)
    if not spec.target.startswith("orchestrator.datasets.") or path is None or file_problem(path):
        return ""
    if any(isinstance(spec.params.get(name), str) for name in NAMES):  # perhaps another file
        return ""
    try:
        if path.stat().st_size > memory_limit():
            return ""
        content = sha256_of(path)
        if openml_of(node):  # which has a file beside it
            content += sha256_of(path.with_suffix(".json"))
        params = {name: value for name, value in spec.params.items() if name not in ("folder", "path")}
        how = json.dumps([spec.name, spec.target, params, path.name, code_digest()], sort_keys=True)
    except (OSError, TypeError, ValueError):
        return ""
    return hashlib.sha256(f"{content} {how}".encode()).hexdigest()


def converted(key: str, cache_dir: Path) -> Path | None:
    """Return the folder of the copy that was made of a source, if it is there and intact."""
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
    """Remember which copy was made of a source; in vain where the cache cannot be written any more."""
    place = folder.parent / _FOLDER
    with suppress(OSError):
        place.mkdir(exist_ok=True)
        with atomic_write(place / key) as file:
            file.write(f"{folder.name}\n{_digest_of_meta(folder)}".encode())


def _digest_of_meta(folder: Path) -> str:
    """Return the hash of names and types, which the fingerprint of the content leaves out."""
    return hashlib.sha256((folder / META).read_bytes()).hexdigest()


@cache
def code_digest() -> str:
    """Return a hash of the code that reads and checks data."""
    digest = hashlib.sha256(repr([version(name) for name in _LIBRARIES]).encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
