"""Source of the user's configuration files for Hydra."""

from collections.abc import Sequence
from pathlib import Path

from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult

from orchestrator.config.user_files import SUFFIXES, say_if_other, two_files
from orchestrator.config.yaml_files import file_problem
from orchestrator.study.errors import ConfigError

_PRIMARY = "config"
"""Name of the file with the default of every key, which exists only in the built-in folder."""


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
        say_if_other(files[0], config_path.removesuffix(".yaml"), loaded.config)
        return loaded

    @staticmethod
    def _normalize_file_name(filename: str) -> str:
        return filename if filename.endswith(SUFFIXES) else f"{filename}.yaml"

    def _files(self, config_path: str) -> Sequence[Path]:
        names = [config_path] if config_path.endswith(SUFFIXES) else [config_path + end for end in SUFFIXES]
        return [path for name in names if (path := Path(self.path) / name).is_file()]
