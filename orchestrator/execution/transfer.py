"""Bring a prepared dataset from the client's host to another one's cache, in pieces, checked at the end."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock

from orchestrator.datasets import DatasetError, open_prepared
from orchestrator.datasets.dataset import fingerprint
from orchestrator.machine import cache_folder
from orchestrator.sources import DataSource, holds
from orchestrator.splits import Folds

PIECE_BYTES = 8 << 20
"""Small enough for a message that neither the scheduler nor a worker notices."""

_STALE_SECONDS = 24 * 3600.0
_STAGING = ".incoming-"


def pieces(source: DataSource) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a prepared dataset with the folds of one study, as (name, piece) in order."""
    folder = Path(source.folder)
    folds = f"splits-{source.split_hash}.npy"
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or (path.name.startswith("splits-") and path.name != folds):
            continue
        with open(path, "rb") as file:
            piece = file.read(PIECE_BYTES)
            while piece:
                yield path.name, piece
                piece = file.read(PIECE_BYTES)


def take_piece(token: str, name: str, piece: bytes) -> None:
    """Append a piece to a file of the transfer `token`, on the host that receives it."""
    folder = cache_folder() / f"{_STAGING}{token}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / name, "ab") as file:
        file.write(piece)


def finish(token: str, source: DataSource) -> None:
    """Check what was received and put it where `open_source` finds it.

    Raises
    ------
    DatasetError
        If it is not what the client sent.
    """
    cache = cache_folder()
    staged = cache / f"{_STAGING}{token}"
    folder = cache / Path(source.folder).name
    try:
        dataset = open_prepared(staged)
        found = fingerprint(dataset.X, dataset.classes, dataset.codes)
        if not (holds(staged, source) and found == source.fingerprint):
            raise DatasetError(f"dataset {source.spec.name!r} was damaged on the way")
        folds = Folds.load(staged, source.split_hash)
        with FileLock(cache / f".{folder.name}.lock"):
            if (folder / "meta.json").exists() and holds(folder, source, folds=False):
                folds.save(folder)
            else:
                shutil.rmtree(folder, ignore_errors=True)
                staged.replace(folder)
    except ValueError as error:  # of which a DatasetError is one
        raise DatasetError(str(error)) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        _forget_abandoned(cache)


def _forget_abandoned(cache: Path) -> None:
    for folder in cache.glob(f"{_STAGING}*"):
        try:
            if time.time() - folder.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # another process was first
