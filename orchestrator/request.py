"""What the command line was told, as every verb takes it."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.config import compose_settings, load_settings
from orchestrator.settings import Settings


@dataclass(frozen=True)
class Request:
    """What the command line was told."""

    overrides: Sequence[str]
    config_dir: Path | None
    command: list[str]

    def compose(self) -> dict:
        """Compose the configuration."""
        return compose_settings(self.overrides, self.config_dir)

    def settings(self) -> Settings:
        """Compose and check the configuration; a user's folder may hold their Python modules too."""
        if self.config_dir is not None:
            sys.path.insert(0, str(self.config_dir.resolve()))
        return load_settings(self.overrides, self.config_dir)
