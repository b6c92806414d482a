"""Sources of the built-in and the user's configuration files for Hydra."""

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult
from omegaconf import OmegaConf

from orchestrator.config.user_files import SUFFIXES, say_if_other, two_files
from orchestrator.config.yaml_files import built_in_content, file_problem
from orchestrator.study.errors import ConfigError

_PRIMARY = "config"
"""Name of the file with the default of every key, which exists only in the built-in folder."""


class BuiltInFiles(FileConfigSource):
    """Configuration source of the built-in files, each of which it reads once in a process."""

    @staticmethod
    def scheme() -> str:
        """Return the scheme of the address of such a folder, which precedes `://`."""
        return "built-in"

    def is_group(self, config_path: str) -> bool:
        """Return whether the folder has a group of this name.

        Parameters
        ----------
        config_path : str
            Name of the group, such as ``"dataset"``.
        """
        return os.path.isdir(os.path.join(self.path, config_path))

    def is_config(self, config_path: str) -> bool:
        """Return whether the folder has a file of this name.

        Parameters
        ----------
        config_path : str
            Group and name, such as ``"dataset/iris"``.
        """
        return os.path.isfile(os.path.join(self.path, self._normalize_file_name(config_path)))

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Return the sorted names of the files or subgroups of a group.

        Parameters
        ----------
        config_path : str
            Name of the group.
        results_filter : ObjectType or None
            Kind of names to return: files, groups, or None for both.
        """
        folder = os.path.join(self.path, config_path)
        if results_filter is not ObjectType.CONFIG:
            return super().list(config_path, results_filter)
        return list(_names(folder, os.stat(folder).st_mtime_ns))

    def load_config(self, config_path: str) -> ConfigResult:
        """Return the content of a file.

        Parameters
        ----------
        config_path : str
            Group and name, such as ``"dataset/iris"``.
        """
        file = os.path.join(self.path, self._normalize_file_name(config_path))
        with open(file, encoding="utf-8") as stream:
            header = self._get_header_dict(stream.read(512))
        content = OmegaConf.create(built_in_content(file))
        return ConfigResult(
            config=content, path=f"{self.scheme()}://{self.path}", provider=self.provider, header=header
        )


@lru_cache(maxsize=64)
def _names(folder: str, changed: int) -> tuple[str, ...]:
    """Return the sorted names of the configuration files in a built-in folder.

    Parameters
    ----------
    folder : str
        Path of the folder.
    changed : int
        Time of the folder's last change in nanoseconds. It makes the cache forget a changed folder.
    """
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name.endswith(".yaml") and entry.is_file()]
    return tuple(sorted(name.removesuffix(".yaml") for name in names))


class UserFiles(FileConfigSource):
    """Configuration source that rejects every file for which `file_problem` reports a problem.

    File names may end in `.yaml` or `.yml`.
    """

    @staticmethod
    def scheme() -> str:
        """Return the scheme of the address of such a folder, which precedes `://`."""
        return "checked"

    def is_config(self, config_path: str) -> bool:
        """Return whether the folder has a file of this name.

        Parameters
        ----------
        config_path : str
            Group and name, such as ``"dataset/iris"``.
        """
        return config_path != _PRIMARY and bool(self._files(config_path))

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Return the sorted names of the files or subgroups of a group.

        Parameters
        ----------
        config_path : str
            Name of the group.
        results_filter : ObjectType or None
            Kind of names to return: files, groups, or None for both.
        """
        names = super().list(config_path, results_filter)
        return sorted({name.removesuffix(".yaml").removesuffix(".yml") for name in names})

    def load_config(self, config_path: str) -> ConfigResult:
        """Return the content of a file, and warn if it differs from the built-in file that it replaces.

        Parameters
        ----------
        config_path : str
            Group and name, such as ``"dataset/iris"``.

        Raises
        ------
        ConfigError
            If the file cannot be loaded, or the folder has two files of this name.
        """
        files = self._files(config_path)
        if problem := two_files(files) or file_problem(files[0]):
            raise ConfigError([problem])
        loaded = super().load_config(str(files[0].relative_to(self.path)))
        with files[0].open(encoding="utf-8-sig") as stream:  # Hydra finds no header after a byte-order mark
            loaded.header = self._get_header_dict(stream.read(512))
        say_if_other(files[0], config_path.removesuffix(".yaml"), loaded.config)
        return loaded

    @staticmethod
    def _normalize_file_name(filename: str) -> str:
        return filename if filename.endswith(SUFFIXES) else f"{filename}.yaml"

    def _files(self, config_path: str) -> Sequence[Path]:
        names = [config_path] if config_path.endswith(SUFFIXES) else [config_path + end for end in SUFFIXES]
        return [path for name in names if (path := Path(self.path) / name).is_file()]
