"""Describe the host and the installation on which numbers were computed."""

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

import psutil

from orchestrator.study.user_cache import cache_folder
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
    """Return the versions of Python and of the packages that affect numbers and records."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


@lru_cache(maxsize=1)
def versions_json() -> str:
    """Return the versions that can change a number, as JSON for the column `versions`."""
    kept = {name: number for name, number in versions().items() if name in ("python", *_NUMERIC)}
    return json.dumps(kept, sort_keys=True)


@lru_cache(maxsize=1)
def host_name() -> str:
    """Return the name of this host."""
    return socket.gethostname()


def numba_cache(packages: Collection[str]) -> Path:
    """Return the folder in which the workers of this host keep code that numba compiled.

    Parameters
    ----------
    packages : collection of str
        Packages with compiled functions. Each version of their sources has its own folder, except for a
        package whose `__init__.py` contains the line `stamps_compiled_code = True`: its cached files name
        the sources on which they depend.

    Returns
    -------
    Path
        A folder below `cache_folder`.
    """
    sources = digest(
        [[name, "" if _stamps_compiled_code(name) else package_hash(name)] for name in sorted(packages)]
    )
    return cache_folder() / "numba" / sources[:16]


def _stamps_compiled_code(package: str) -> bool:
    """Return whether a package declares that its cached machine code depends on all its sources.

    Parameters
    ----------
    package : str
        Name of a package or of a module. It is not imported.

    Returns
    -------
    bool
        Whether its first file contains the line `stamps_compiled_code = True`.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.origin or not Path(spec.origin).is_file():
        return False
    return "stamps_compiled_code = True" in Path(spec.origin).read_text(encoding="utf-8").splitlines()


def cache_token(folder: Path) -> str:
    """Return a token that identifies a folder: all processes that share the folder read the same one.

    Parameters
    ----------
    folder : Path
        A cache folder, which is created if necessary.

    Returns
    -------
    str
        A random token, or a text with the host's name if the folder cannot be written.
    """
    path = folder / "cache-id"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".cache-id.{uuid4().hex}"
        draft.write_text(uuid4().hex)
        with suppress(FileExistsError):
            os.link(draft, path)  # only the first process succeeds, and no process reads a half-written file
        draft.unlink()
        return path.read_text()
    except OSError:
        return f"{host_name()} without a cache"


@lru_cache(maxsize=1)
def host_summary() -> dict[str, Any]:
    """Return name, processor, cores, memory (GiB) and chosen instruction sets of this host."""
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
    """Return the model name of the processor."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


@cache
def package_identity(package: str) -> str:
    """Return the name and source hash of a package, which client and workers must share.

    The hash is computed from files, so it does not depend on what has been imported.

    Parameters
    ----------
    package : str
        Dotted name of a package or of a module in it.

    Returns
    -------
    str
        The top-level name and the hash, separated by a space.
    """
    root = package.partition(".")[0]
    return " ".join(part for part in (root, package_hash(root)) if part)


def package_hash(package: str) -> str:
    """Hash the Python sources of a package, without its tests and without importing it.

    Parameters
    ----------
    package : str
        Name of a package, or of a module, whose only file is hashed.

    Returns
    -------
    str
        The first 12 hexadecimal digits of the hash; empty if no sources are found.
    """
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
    """Return the commit and the cleanliness of the checkout that holds the sources of a package.

    Parameters
    ----------
    package : str
        Dotted name of a package or of a module in it.

    Returns
    -------
    dict or None
        `commit` (str) and `dirty` (bool). None if no checkout tracks the sources: an installed package is
        not tracked, even if it lies in a folder of a checkout.
    """
    try:
        spec = importlib.util.find_spec(package.partition(".")[0])
    except ValueError:  # the module has no file
        return None
    paths = list(spec.submodule_search_locations or filter(None, [spec.origin])) if spec else []
    if not paths:
        return None
    path = Path(paths[0])
    folder, name = (path, ".") if path.is_dir() else (path.parent, path.name)
    try:
        _git(folder, "ls-files", "--error-unmatch", "--", name)
        return {
            "commit": _git(folder, "rev-parse", "HEAD"),
            "dirty": bool(_git(folder, "status", "--porcelain", "--untracked-files=no")),
        }
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    """Run a git command in a folder and return its output.

    Parameters
    ----------
    folder : Path
        A folder of the checkout.
    *arguments : str
        Arguments of git.

    Returns
    -------
    str
        Standard output, without surrounding white space.
    """
    command = ["git", "-C", str(folder), *arguments]
    # A git hook sets these variables, and they would redirect the command to its checkout.
    redirections = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    environment = {name: value for name, value in os.environ.items() if name not in redirections}
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=10, env=environment
    ).stdout.strip()


_WITH_BLAS = ("numpy", "scipy.linalg")
"""Modules that load the BLAS libraries of the numerical code."""


@lru_cache(maxsize=1)
def arithmetic() -> dict[str, Any]:
    """Return the code that NumPy, numba and BLAS have chosen for this processor.

    Two processors of one `arithmetic` compute the same digits with the same software. Environment variables
    can change the choice of NumPy, numba and OpenBLAS (`NPY_DISABLE_CPU_FEATURES`, `NUMBA_CPU_NAME`,
    `OPENBLAS_CORETYPE`). The result contains the choice that is in effect.

    Returns
    -------
    dict
        `numpy`: the processor features that NumPy uses special loops for; `numba`: the processor that
        numba compiles for; `blas`: the kernels that the BLAS of NumPy and of SciPy use.
    """
    return {"numpy": _numpy_features(), "numba": _numba_processor(), "blas": _blas_kernels()}


def _numpy_features() -> Sequence[str]:
    """Return the processor features that NumPy uses special loops for."""
    loops = importlib.import_module("numpy._core._multiarray_umath")  # private, without stubs
    return [name for name in loops.__cpu_dispatch__ if loops.__cpu_features__.get(name)]


def _numba_processor() -> str:
    """Return the name of the processor that numba compiles for."""
    from llvmlite.binding import get_host_cpu_name  # much faster to import than numba

    return os.environ.get("NUMBA_CPU_NAME") or str(get_host_cpu_name())


def _blas_kernels() -> Sequence[str]:
    """Return the kernels of the BLAS libraries of NumPy and SciPy, sorted.

    Libraries of other packages that this process has imported are ignored.
    """
    from threadpoolctl import threadpool_info

    packages = [importlib.import_module(name).__name__.partition(".")[0] for name in _WITH_BLAS]
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return sorted({_kernels(each) for each in libraries if _is_shared_or_of(packages, each["filepath"])})


def _kernels(library: dict[str, Any]) -> str:
    """Return the name of the kernels that a BLAS library uses.

    Parameters
    ----------
    library : dict
        Description of the library by `threadpoolctl`.

    Returns
    -------
    str
        The architecture, or the library's kind if it names none.
    """
    return str(library.get("architecture") or library["internal_api"])


def _is_shared_or_of(packages: Sequence[str], library: str) -> bool:
    """Return whether a library belongs to the system or to one of the given packages.

    Parameters
    ----------
    packages : sequence of str
        Top-level names of packages.
    library : str
        Path of the library's file.

    Returns
    -------
    bool
        False if another installed package contains the library.
    """
    import numpy

    installed, path = Path(numpy.__file__).resolve().parents[1], Path(library).resolve()
    return not path.is_relative_to(installed) or path.relative_to(installed).parts[0].startswith(
        tuple(packages)
    )
