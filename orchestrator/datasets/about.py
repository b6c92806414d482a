"""What a dataset's configuration says of the dataset itself, under `about`, which no loader is given."""

import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from orchestrator.datasets.libsvm_files import SUFFIXES, libsvm_path
from orchestrator.datasets.openml_files import openml_of
from orchestrator.datasets.packages import package_folder
from orchestrator.study.names import did_you_mean
from orchestrator.study.text import shown

ABOUT = "about"

_NUMBERS = ("n", "d", "classes")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FILE_LOADERS = ("orchestrator.datasets.libsvm_file", "orchestrator.datasets.libsvm.libsvm_file")


@dataclass(frozen=True)
class RemoteFile:
    """A file that can be fetched: its addresses, in the order in which they are tried, and its SHA-256."""

    urls: tuple[str, ...]
    sha256: str = ""

    @property
    def suffix(self) -> str:
        """The ending of a compressed file, such as `.bz2`; empty for text."""
        suffix = Path(urlsplit(self.urls[0]).path).suffix
        return suffix if f".libsvm{suffix}" in SUFFIXES else ""


@dataclass(frozen=True)
class About:
    """A dataset as it is published.

    Attributes
    ----------
    n, d, classes : int or None
        Numbers of rows, features and classes.
    source : str
        Where it is published.
    licence, citation : str
    note : str
        How the files that are fetched differ from the source, or what was done to the data.
    files : tuple of RemoteFile
        LIBSVM text, which makes up the dataset when joined in this order; empty if it cannot be fetched.
    """

    n: int | None = None
    d: int | None = None
    classes: int | None = None
    source: str = ""
    licence: str = ""
    citation: str = ""
    note: str = ""
    files: tuple[RemoteFile, ...] = ()


def read_about(node: Mapping[str, Any]) -> About:
    """Return what a dataset's configuration says of it, without what `about_problems` finds fault with."""
    given = node.get(ABOUT)
    given = given if isinstance(given, Mapping) else {}
    known = {key: value for key, value in given.items() if key != "files" and not _problem(key, value)}
    files = given.get("files") or ()
    if not isinstance(files, list) or any(_problem("files", files) for _ in files[:1]):
        files = ()
    remote = tuple(RemoteFile(tuple(file["urls"]), str(file.get("sha256") or "")) for file in files)
    return About(**known, files=remote)


def about_problems(name: str, node: Mapping[str, Any]) -> Iterator[str]:
    """Find what is wrong with `about` in a dataset's configuration."""
    given = node.get(ABOUT, {})
    if not isinstance(given, Mapping):
        yield f"dataset {name}: about must map keys such as n and source to values, found {shown(given)}"
        return
    for key, value in given.items():
        if problem := _problem(key, value):
            yield f"dataset {name}: {problem}"


def _problem(key: Any, value: Any) -> str:
    known = [field.name for field in fields(About)]
    if key not in known:
        return f"about.{key} is no key{did_you_mean(str(key), known)}; known: {', '.join(known)}"
    if key == "files":
        return _files_problem(value)
    if key in _NUMBERS:
        good = type(value) is int and value > 0
        return "" if good else f"about.{key} must be a whole number from 1, found {shown(value)}"
    return "" if isinstance(value, str) else f"about.{key} must be a text, found {shown(value)}"


def _files_problem(files: Any) -> str:
    if not isinstance(files, list) or not all(isinstance(file, Mapping) for file in files):
        return f"about.files must be a list of files such as {{urls: [https://…]}}, found {shown(files)}"
    for file in files:
        if unknown := [key for key in file if key not in ("urls", "sha256")]:
            return f"about.files: {shown(unknown[0])} is no key; known: urls, sha256"
        urls = file.get("urls")
        if not isinstance(urls, list) or not urls or not all(map(_is_address, urls)):
            return (
                f"about.files: urls must be a list of addresses, https://… or http://…, found {shown(urls)}"
            )
        if (digest := file.get("sha256")) and not _SHA256.fullmatch(str(digest)):
            return f"about.files: sha256 must be 64 hexadecimal digits in lower case, found {shown(digest)}"
    suffixes = {RemoteFile(tuple(file["urls"])).suffix for file in files}
    if len(suffixes) > 1:
        return f"about.files: files that are joined must be compressed alike, found {sorted(suffixes)}"
    return ""


def _is_address(url: Any) -> bool:
    return isinstance(url, str) and url.isprintable() and url.startswith(("https://", "http://"))


def file_of(node: Mapping[str, Any]) -> tuple[Path, str] | None:
    """Return the folder and name of the LIBSVM file that a dataset's configuration reads; None for others."""
    name, folder = node.get("name"), node.get("folder")
    if node.get("_target_") in _FILE_LOADERS and isinstance(name, str) and isinstance(folder, str):
        return Path(folder).expanduser(), name
    return None


def path_at_hand(node: Mapping[str, Any]) -> Path | None:
    """Return the file that a dataset's configuration reads, or the folder of its files, if it is there."""
    if (libsvm := file_of(node)) is not None:
        folder, name = libsvm
        return libsvm_path(name, folder)
    if (openml := openml_of(node)) is not None:
        return openml.path if openml.is_whole else None
    given, package = node.get("path"), node.get("package")
    if not isinstance(given, str) or not given:
        return None
    place = package_folder(package) if isinstance(package, str) and package else Path()
    found = None if place is None else place / Path(given).expanduser()
    return found if found is not None and found.exists() else None


def is_at_hand(node: Mapping[str, Any]) -> bool:
    """Whether a dataset can be loaded without fetching anything, as far as that shows without an import."""
    if file_of(node) or openml_of(node) or isinstance(node.get("path"), str):
        return path_at_hand(node) is not None
    package = str(node.get("_target_")).partition(".")[0]
    return package.isidentifier() and importlib.util.find_spec(package) is not None
