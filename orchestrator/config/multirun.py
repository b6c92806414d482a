"""Meaning of `--multirun`: several values of a key are an axis of one study, instead of several studies."""

from collections.abc import Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from orchestrator.config.override_text import with_quotes
from orchestrator.study.errors import ConfigError

_AXES = ("datasets", "solvers", "protocol.seed")


def as_axes(overrides: Sequence[str]) -> list[str]:
    """Rewrite overrides with several values as lists.

    Parameters
    ----------
    overrides : sequence of str
        Overrides in Hydra's grammar; `key=a,b` becomes `key=[a,b]`.

    Raises
    ------
    ConfigError
        If a key cannot be an axis of a study. The error names every such key.
    """
    problems: list[str] = []
    rewritten = [_as_axis(with_quotes(text), problems) for text in overrides]
    if problems:
        raise ConfigError(problems)
    return rewritten


def _as_axis(text: str, problems: list[str]) -> str:
    try:
        override = OverridesParser.create().parse_override(text)
        values = list(override.sweep_string_iterator()) if override.is_sweep_override() else None
    except (HydraException, RecursionError):
        return text  # composing the configuration reports the problem
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
        hint = "run a separate study, study=NAME, for each value"
    expected = f"{', '.join(_AXES)} or sweep.PARAMETER"
    return f"--multirun: {key} cannot be an axis of a study; expected {expected}; {hint}"
