"""Descriptions, for a reader, of how rows are split: by a number of folds or by a splitter."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orchestrator.study.targets import RESERVED, TARGET
from orchestrator.study.values import cell

PREDEFINED = "sklearn.model_selection.PredefinedSplit"
"""Splitter of the test rows that a dataset has itself."""
_REPEATED = ("sklearn.model_selection.RepeatedKFold", "sklearn.model_selection.RepeatedStratifiedKFold")
_DEFAULTS = {"n_splits": 5, "n_repeats": 10}
"""Default arguments of scikit-learn's repeated splitters."""


def in_words(scheme: Any, counts: Iterable[int] = ()) -> str:
    """Describe how rows are split: `5 stratified folds`; `RepeatedStratifiedKFold, 5 splits × 2 repeats`.

    Parameters
    ----------
    scheme : int or mapping
        Number of folds, or a splitter: attribute `outer` or `inner` of `Protocol`.
    counts : iterable of int
        Numbers of splits that the splitter made, for a splitter whose arguments do not include them.
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
    """Return the number of repetitions of the outer splits: number of seeds times repeats of the splitter.

    Parameters
    ----------
    protocol : mapping
        Protocol, as recorded.
    """
    seed, outer = protocol.get("seed"), protocol.get("outer")
    repeats = _arguments(outer).get("n_repeats") if isinstance(outer, Mapping) else 1
    n_seeds = len(seed) if isinstance(seed, (list, tuple)) else 1
    return n_seeds * (repeats if isinstance(repeats, int) else 1)


def _arguments(scheme: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a splitter, including the defaults of scikit-learn's repeated splitters.

    Parameters
    ----------
    scheme : mapping
        Splitter, with its `_target_`.
    """
    defaults = _DEFAULTS if scheme.get(TARGET) in _REPEATED else {}
    return defaults | {name: value for name, value in scheme.items() if name not in RESERVED}


def described(protocol: Mapping[str, Any], n_inner: Iterable[Sequence[int]], uses_inner: bool = True) -> str:
    """Describe how a protocol splits rows; empty for two numbers of folds and one seed.

    Parameters
    ----------
    protocol : mapping
        Protocol, as recorded.
    n_inner : iterable of sequence of int
        For each dataset, the number of inner splits of each outer split.
    uses_inner : bool
        Whether the study trains on inner splits. Default True. Otherwise they are not described.
    """
    outer, inner, seeds = (protocol.get(name) for name in ("outer", "inner", "seed"))
    inner = inner if uses_inner else None
    seeds = seeds if isinstance(seeds, (list, tuple)) else [seeds]
    if not (len(seeds) > 1 or isinstance(outer, Mapping) or isinstance(inner, Mapping)):
        return ""
    numbers = [list(each) for each in n_inner]
    texts = [f"outer splits: {in_words(outer, [len(each) // max(1, len(seeds)) for each in numbers])}"]
    if inner is not None:
        texts.append(f"inner splits: {in_words(inner, [number for each in numbers for number in each])}")
    if len(seeds) > 1:
        texts.append(f"repeated for each of the seeds {', '.join(map(str, seeds))}")
    return "; ".join(texts)
