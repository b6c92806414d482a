"""The arguments of a command, which every verb receives.

The collection of garbage is off while modules are imported. It is enabled once the configuration has been
read, because almost all modules are imported by then.
"""

import gc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.study.settings import Settings


def names_and_overrides(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separate names of studies, written alone or as `study=NAME`, from other overrides.

    Parameters
    ----------
    arguments : sequence of str
        Arguments of a verb.

    Returns
    -------
    names : list of str
        Names in the order of the arguments. Several names may be joined by commas.
    overrides : list of str
        The other arguments.
    """
    names: list[str] = []
    overrides: list[str] = []
    for text in arguments:
        if text.startswith("study="):
            names += text.removeprefix("study=").strip("'\"").split(",")
        elif "=" in text or text.startswith("~"):  # Hydra removes a key with ~key
            overrides.append(text)
        else:
            names += text.split(",")
    return names, overrides


def with_study(verb: str, arguments: Sequence[str]) -> list[str]:
    """Return the overrides of a verb that takes a study, with a name alone replaced by `study=NAME`.

    Parameters
    ----------
    verb : str
        Name of the verb, for the message.
    arguments : sequence of str
        Arguments of the verb.

    Raises
    ------
    ConfigError
        If two arguments name studies, and one of them is a name alone.
    """
    names = [text for text in arguments if "=" not in text and not text.startswith("~")]
    others = [text for text in arguments if text not in names]
    given = [text for text in others if text.startswith("study=")]
    if len(names) + (len(given) if names else 0) > 1:
        from orchestrator.study.errors import ConfigError

        found = ", ".join(map(repr, [*names, *given]))
        raise ConfigError([f"{verb}: expected one study, NAME or study=NAME; found {found}"])
    return [*others, *(f"study='{name}'" if name.lower() == "null" else f"study={name}" for name in names)]


def check_keys(verb: str, overrides: Sequence[str], usage: str) -> None:
    """Raise if a verb that takes names and folders is given another setting.

    Parameters
    ----------
    verb : str
        Name of the verb, for the message.
    overrides : sequence of str
        Arguments of the verb that are not names.
    usage : str
        How the verb is written, for the message.

    Raises
    ------
    ConfigError
        If an override is neither a folder of `paths` nor a setting of Hydra.
    """
    others = [text for text in overrides if not text.lstrip("+~").startswith(("paths.", "hydra."))]
    if others:
        from orchestrator.study.errors import ConfigError
        from orchestrator.study.text import shown

        raise ConfigError(
            [f"{verb}: {shown(others[0], 100)} is no argument of it. Write: svmbench {verb} {usage}".rstrip()]
        )


@dataclass(frozen=True)
class Request:
    """The arguments of a command.

    Attributes
    ----------
    overrides : sequence of str
        Arguments of the verb: names, or overrides in Hydra's grammar.
    config_dir : Path or None
        The user's folder of configurations.
    command : list of str
        The complete command, for provenance.
    yes : bool
        Whether `delete` deletes without asking. Default False.
    watch : bool
        Whether `report` writes its report again while the study runs. Default False.
    as_json : bool
        Whether the verb prints JSON for programs. Default False.
    open_page : bool
        Whether `report` opens its page in the browser. Default False.
    meant : bool
        Whether `command` contains overrides of an earlier command. Default False.
    share : float
        Share of the trials of each dataset × arm that `accept` trains again. Default 0.01.
    at_least : int
        Smallest number of trials of each dataset × arm that `accept` trains again. Default 100.
    seed : int
        Seed of the sample that `accept` draws. Default 0.
    """

    overrides: Sequence[str]
    config_dir: Path | None
    command: list[str]
    yes: bool = False
    watch: bool = False
    as_json: bool = False
    open_page: bool = False
    meant: bool = False
    share: float = 0.01
    at_least: int = 100
    seed: int = 0

    def settings(self) -> "Settings":
        """Compose and check the configuration."""
        from orchestrator.config.compose import load_settings

        settings = load_settings(self.overrides, self.config_dir)
        _collect_garbage()
        return settings

    def config(self, overrides: Sequence[str] | None = None) -> dict[str, Any]:
        """Compose the configuration without checking its values.

        Parameters
        ----------
        overrides : sequence of str, optional
            Overrides in Hydra's grammar. By default those of the command.
        """
        from orchestrator.config.compose import compose_settings

        config = compose_settings(self.overrides if overrides is None else overrides, self.config_dir)
        _collect_garbage()
        return config

    def study(self) -> tuple[str, Path]:
        """Return the name of the configured study, and the folder of studies.

        Raises
        ------
        ConfigError
            As `named_study`.
        """
        from orchestrator.config.schema import folders

        config = self.config()
        return named_study(config, self.command[1]), folders(config).results


def named_study(config: Mapping[str, Any], verb: str) -> str:
    """Return the name of the stored study that a configuration names.

    Parameters
    ----------
    config : mapping
        Composed configuration.
    verb : str
        Name of the verb, for the message.

    Raises
    ------
    ConfigError
        If no study is named, with the stored ones in the message, or if the name is not valid.
    """
    from orchestrator.config.schema import folders, study_name
    from orchestrator.store.study_folders import study_folders
    from orchestrator.study.errors import ConfigError

    if config["study"] in (None, ""):
        known = ", ".join(path.name for path in study_folders(folders(config).results))
        raise ConfigError(
            [
                f"{verb}: expected the name of a study (stored: {known or 'none'}). Write: svmbench {verb} "
                "study=NAME"
            ]
        )
    return study_name(config)


def _collect_garbage() -> None:
    """Enable the collection of garbage, except for objects that exist already."""
    gc.freeze()
    gc.enable()
