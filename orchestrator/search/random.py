"""Random search: candidates drawn from the space in one step (Bergstra and Bengio, JMLR 13, 2012)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from orchestrator.search.space import Range


def random_search(
    space: Mapping[str, Sequence[Any] | Range], seed: int, budget: int = 20
) -> Iterator[list[dict[str, Any]]]:
    """Yield random candidates in one round; a larger budget starts with the candidates of a smaller one.

    If every parameter has a list, candidates are drawn without replacement. If a parameter has a range, all
    values are drawn independently, as in scikit-learn's `ParameterSampler`.

    Parameters
    ----------
    space : mapping of str to sequence or Range
        Values or range of each parameter.
    seed : int
        Seed of the draw.
    budget : int
        Number of candidates; fewer if the space has fewer points.

    Yields
    ------
    list of dict
        All candidates.
    """
    generator = np.random.default_rng(seed)
    lists = {name: values for name, values in space.items() if not isinstance(values, Range)}
    if len(lists) == len(space):
        shape = [len(values) for values in lists.values()]
        chosen = generator.permutation(math.prod(shape))[:budget]
        indices = np.stack(np.unravel_index(chosen, shape), axis=1) if shape else np.empty((1, 0), dtype=int)
        yield [
            {name: values[index] for (name, values), index in zip(lists.items(), row, strict=True)}
            for row in indices.tolist()
        ]
        return
    yield [
        {name: _at(values, share) for (name, values), share in zip(space.items(), row, strict=True)}
        for row in generator.random((budget, len(space))).tolist()
    ]


def _at(values: Sequence[Any] | Range, share: float) -> Any:
    """Return the value at a share of an axis.

    Parameters
    ----------
    values : sequence or Range
        Listed values or range of the axis.
    share : float
        Position on the axis, from 0 to 1; below 1 for a list.
    """
    return values.at(share) if isinstance(values, Range) else values[int(share * len(values))]
