"""How rows are split, in words: a number of folds, or a splitter."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orchestrator.study.targets import RESERVED, TARGET
from orchestrator.study.values import cell

_REPEATED = ("sklearn.model_selection.RepeatedKFold", "sklearn.model_selection.RepeatedStratifiedKFold")
_DEFAULTS = {"n_splits": 5, "n_repeats": 10}
"""Of scikit-learn's repeated splitters."""


def in_words(scheme: Any, counts: Iterable[int] = ()) -> str:
    """Say how rows are split: `5 stratified folds`; `RepeatedStratifiedKFold, 5 splits × 2 repeats`.

    Parameters
    ----------
    scheme : int or mapping
        Of `Protocol`.
    counts : iterable of int
        The numbers of splits that a splitter made, where its arguments do not say it.
    """
    if not isinstance(scheme, Mapping):
        return f"{scheme} stratified folds"
    said = _arguments(scheme)
    number, repeats = said.pop("n_splits", None), said.pop("n_repeats", None)
    if isinstance(number, int) and isinstance(repeats, int):
        text = f"{number} splits × {repeats} repeats"
    else:
        found = sorted({number} if isinstance(number, int) and repeats is None else set(counts))
        text = " to ".join(map(str, dict.fromkeys([*found[:1], *found[-1:]])))
        text = f"{text} split{'' if text == '1' else 's'}" if text else ""
    others = ", ".join(f"{name}={cell(value)}" for name, value in said.items())
    name = str(scheme.get(TARGET)).rpartition(".")[2]
    return ", ".join(part for part in (name, text, others) if part)


def n_repeats(protocol: Mapping[str, Any]) -> int:
    """Return how often a protocol repeats its outer splits: over seeds, and by a splitter that says so."""
    seed, outer = protocol.get("seed"), protocol.get("outer")
    repeats = _arguments(outer).get("n_repeats") if isinstance(outer, Mapping) else 1
    n_seeds = len(seed) if isinstance(seed, (list, tuple)) else 1
    return n_seeds * (repeats if isinstance(repeats, int) else 1)


def _arguments(scheme: Mapping[str, Any]) -> dict[str, Any]:
    """Return a splitter's arguments, those included that say how often it repeats its splits by default."""
    defaults = _DEFAULTS if scheme.get(TARGET) in _REPEATED else {}
    return defaults | {name: value for name, value in scheme.items() if name not in RESERVED}


def described(protocol: Mapping[str, Any], n_inner: Iterable[Sequence[int]]) -> str:
    """Say how a protocol splits rows; empty where two numbers of folds and one seed say it all.

    Parameters
    ----------
    protocol : mapping
        The facts of a `Protocol`.
    n_inner : iterable of sequence of int
        The numbers of inner splits of each outer split, by dataset.
    """
    outer, inner, seeds = (protocol.get(name) for name in ("outer", "inner", "seed"))
    seeds = seeds if isinstance(seeds, (list, tuple)) else [seeds]
    if not (len(seeds) > 1 or isinstance(outer, Mapping) or isinstance(inner, Mapping)):
        return ""
    numbers = [list(each) for each in n_inner]
    texts = [
        f"outer splits: {in_words(outer, [len(each) // max(1, len(seeds)) for each in numbers])}",
        f"inner splits: {in_words(inner, [number for each in numbers for number in each])}",
    ]
    if len(seeds) > 1:
        texts.append(f"made anew for each of the seeds {', '.join(map(str, seeds))}")
    return "; ".join(texts)
