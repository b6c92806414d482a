"""Facts about the host and the installation that belong beside every number."""

import hashlib
import importlib
import importlib.util
import json
import os
import platform
import socket
import subprocess
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from uuid import uuid4

import platformdirs
import psutil

from orchestrator.study.values import digest

_PACKAGES = (
    "svmbench",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "pandas",
    "pyarrow",
    "dask",
    "distributed",
)
_NUMERIC = ("svmbench", "numpy", "scipy", "scikit-learn", "numba")


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that numbers and records depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


@lru_cache(maxsize=1)
def versions_json() -> str:
    """Return the versions that can change a number, as the records' column `versions` holds them."""
    kept = {name: number for name, number in versions().items() if name in ("python", *_NUMERIC)}
    return json.dumps(kept, sort_keys=True)


@lru_cache(maxsize=1)
def host_name() -> str:
    """Return this host's name."""
    return socket.gethostname()


def cache_folder() -> Path:
    """Return where this host keeps prepared datasets: SVMBENCH_CACHE, or the user's cache folder."""
    return Path(os.environ.get("SVMBENCH_CACHE") or platformdirs.user_cache_dir("svmbench")).expanduser()


def numba_cache(packages: Collection[str]) -> Path:
    """Return where workers of this host keep what numba compiled of packages with such sources."""
    sources = digest([[name, package_hash(name)] for name in sorted(packages)])
    return cache_folder() / "numba" / sources[:16]


def cache_token(folder: Path) -> str:
    """Return a token that all processes who see this very folder find in it, and no others."""
    path = folder / "cache-id"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".cache-id.{uuid4().hex}"
        draft.write_text(uuid4().hex)
        with suppress(FileExistsError):
            os.link(draft, path)  # only the first succeeds, and a half-written file is never read
        draft.unlink()
        return path.read_text()
    except OSError:
        return f"{host_name()} without a cache"


@lru_cache(maxsize=1)
def host_facts() -> dict[str, Any]:
    """Return name, processor and the code chosen for it, cores, and memory (GB) of this host."""
    return {
        "host": host_name(),
        "cpu": _cpu_model(),
        "arithmetic": arithmetic(),
        "cores": psutil.cpu_count(logical=False) or os.cpu_count() or 1,
        "threads": os.cpu_count() or 1,
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "platform": platform.platform(),
    }


def _cpu_model() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


@cache
def package_identity(package: str) -> str:
    """Return name and source hash of a whole package: what a worker must have in common with us.

    It is read from files, so that it does not depend on what has been imported.
    """
    root = package.partition(".")[0]
    return " ".join(part for part in (root, package_hash(root)) if part)


def package_hash(package: str) -> str:
    """Hash a package's Python sources, tests aside, without importing it; of a module, its file."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        return ""
    folders = [Path(folder) for folder in spec.submodule_search_locations or []]
    files = [
        (path.relative_to(folder).as_posix(), path)
        for folder in folders
        for path in folder.rglob("*.py")
        if "tests" not in path.relative_to(folder).parts
    ]
    if not folders and spec.origin and Path(spec.origin).is_file():
        files = [(Path(spec.origin).name, Path(spec.origin))]
    content = hashlib.sha256()
    for name, path in sorted(files):
        content.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return content.hexdigest()[:12] if files else ""


def git_state(package: str) -> dict[str, Any] | None:
    """Return commit and cleanliness of the checkout that holds a package's sources.

    None if no checkout does: for a package that was installed, be it into a folder of a checkout's.
    """
    try:
        spec = importlib.util.find_spec(package.partition(".")[0])
    except ValueError:  # a module that no file was read for
        return None
    places = list(spec.submodule_search_locations or filter(None, [spec.origin])) if spec else []
    if not places:
        return None
    place = Path(places[0])
    folder, name = (place, ".") if place.is_dir() else (place.parent, place.name)
    try:
        _git(folder, "ls-files", "--error-unmatch", "--", name)
        return {
            "commit": _git(folder, "rev-parse", "HEAD"),
            "dirty": bool(_git(folder, "status", "--porcelain", "--untracked-files=no")),
        }
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    # Set in a hook, or by someone who works on another checkout, these would lead there.
    elsewhere = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    own = {name: value for name, value in os.environ.items() if name not in elsewhere}
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=10, env=own
    ).stdout.strip()


_WITH_BLAS = ("numpy", "scipy.linalg")
"""Modules that load the BLAS libraries by which our numbers are computed."""


@lru_cache(maxsize=1)
def arithmetic() -> dict[str, Any]:
    """Return the code that NumPy, numba and BLAS have chosen for this processor.

    Two processors of one `arithmetic` compute the same digits with the same software. NumPy, numba's
    compiler and OpenBLAS let environment variables choose (`NPY_DISABLE_CPU_FEATURES`, `NUMBA_CPU_NAME`,
    `OPENBLAS_CORETYPE`), and their choice is what is returned.

    Returns
    -------
    dict
        `numpy`: the processor features for which NumPy has loops of their own and that it uses; `numba`: the
        processor for which numba compiles; `blas`: the kernels that the BLAS of NumPy and of SciPy use.
    """
    return {"numpy": _numpy_features(), "numba": _numba_processor(), "blas": _blas_kernels()}


def _numpy_features() -> Sequence[str]:
    loops = importlib.import_module("numpy._core._multiarray_umath")  # which has no public name or stubs
    return [name for name in loops.__cpu_dispatch__ if loops.__cpu_features__.get(name)]


def _numba_processor() -> str:
    from llvmlite.binding import get_host_cpu_name  # numba itself takes much longer to import

    return os.environ.get("NUMBA_CPU_NAME") or str(get_host_cpu_name())


def _blas_kernels() -> Sequence[str]:
    """Return the kernels in use, whatever else this process has imported."""
    from threadpoolctl import threadpool_info

    packages = [importlib.import_module(name).__name__.partition(".")[0] for name in _WITH_BLAS]
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return sorted({_kernels(each) for each in libraries if _is_shared_or_of(packages, each["filepath"])})


def _kernels(library: dict[str, Any]) -> str:
    return str(library.get("architecture") or library["internal_api"])


def _is_shared_or_of(packages: Sequence[str], library: str) -> bool:
    """Whether a library belongs to the system or to one of the packages, and not to any other package."""
    import numpy

    installed, path = Path(numpy.__file__).resolve().parents[1], Path(library).resolve()
    return not path.is_relative_to(installed) or path.relative_to(installed).parts[0].startswith(
        tuple(packages)
    )
