"""The arguments of a command, which every verb receives.

The collection of garbage is off while modules are imported. It is enabled once the configuration has been
read, because almost all modules are imported by then.
"""

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

    def study(self, overrides: Sequence[str] | None = None) -> tuple[str, Path]:
        """Return the name of the configured study, and the folder of studies.

        Parameters
        ----------
        overrides : sequence of str, optional
            Overrides in Hydra's grammar. By default those of the command.
        """
        from orchestrator.config.schema import folders, study_name

        config = self.config(overrides)
        return study_name(config), folders(config).results


def _collect_garbage() -> None:
    """Enable the collection of garbage, except for objects that exist already."""
    gc.freeze()
    gc.enable()
