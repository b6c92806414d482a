"""The arguments of a command, which every verb receives."""

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.study.settings import Settings


@dataclass(frozen=True)
class Request:
    """The arguments of a command.

    Almost every module is imported when the configuration is read; from then on garbage is collected.

    Parameters
    ----------
    overrides : sequence of str
        The verb's arguments: names, or overrides in Hydra's grammar.
    config_dir : Path or None
        The user's folder of configurations.
    command : list of str
        The whole command, for provenance.
    yes : bool
        Whether `delete` deletes without asking.
    watch : bool
        Whether `report` writes its report again while the study runs.
    """

    overrides: Sequence[str]
    config_dir: Path | None
    command: list[str]
    yes: bool = False
    watch: bool = False

    def settings(self) -> "Settings":
        """Compose and check the configuration."""
        from orchestrator.config.compose import load_settings

        settings = load_settings(self.overrides, self.config_dir)
        _collect_garbage()
        return settings

    def config(self, overrides: Sequence[str] | None = None) -> dict[str, Any]:
        """Compose the configuration, by the command's overrides or by others, without checking all of it."""
        from orchestrator.config.compose import compose_settings

        config = compose_settings(self.overrides if overrides is None else overrides, self.config_dir)
        _collect_garbage()
        return config

    def study(self, overrides: Sequence[str] | None = None) -> tuple[str, Path]:
        """Return a study's name and the folder of studies, by the command's overrides or by others."""
        from orchestrator.config.schema import folders, study_name

        config = self.config(overrides)
        return study_name(config), folders(config).results


def _collect_garbage() -> None:
    """Collect garbage from now on, but for what was imported."""
    gc.freeze()
    gc.enable()
