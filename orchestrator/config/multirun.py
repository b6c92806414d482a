"""What `--multirun` means here: several values of a key are an axis of one study, not several studies."""

from collections.abc import Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from orchestrator.study.errors import ConfigError

_AXES = ("datasets", "solvers", "protocol.seed")


def as_axes(overrides: Sequence[str]) -> list[str]:
    """Return overrides in which each choice among values has become a list.

    Raises
    ------
    ConfigError
        Naming every key that cannot be an axis of a study.
    """
    problems: list[str] = []
    rewritten = [_as_axis(text, problems) for text in overrides]
    if problems:
        raise ConfigError(problems)
    return rewritten


def _as_axis(text: str, problems: list[str]) -> str:
    try:
        override = OverridesParser.create().parse_override(text)
        values = list(override.sweep_string_iterator()) if override.is_sweep_override() else None
    except (HydraException, RecursionError):
        return text  # composing says what is wrong with it
    if values is None:
        return text
    key = override.key_or_group
    if key in _AXES:
        values = [value.removeprefix("[").removesuffix("]") for value in values]
    elif not key.startswith("sweep."):
        problems.append(_no_axis(override, values))
    return f"{text.partition('=')[0]}=[{','.join(values)}]"


def _no_axis(override: Override, values: Sequence[str]) -> str:
    key = override.key_or_group
    group, _, parameter = key.rpartition(".")
    if group.split(".")[0] == "solver" and parameter:
        hint = f"write sweep.{parameter}=[{','.join(values)}]"
    elif key.startswith("search.space."):
        hint = f"a search chooses among {key}=[{','.join(values)}]"
    else:
        hint = "run a study of its own, study=NAME, for each value"
    return f"--multirun: {key} is no axis of a study ({', '.join(_AXES)} and sweep.PARAMETER are); {hint}"
