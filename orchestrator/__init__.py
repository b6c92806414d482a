"""Distributed nested cross-validation: declares, schedules, stores and reports comparisons of classifiers."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["load_study"]

if TYPE_CHECKING:
    from orchestrator.engine.load import load_study


def __getattr__(name: str) -> Any:
    """Import `load_study` when it is asked for, so that the package itself imports at once."""
    if name == "load_study":
        from orchestrator.engine.load import load_study

        return load_study
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
