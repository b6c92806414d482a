"""Random search: candidates drawn from the space at once (Bergstra and Bengio, JMLR 13, 2012)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from orchestrator.search.space import Range


def random_search(
    space: Mapping[str, Sequence[Any] | Range], seed: int, budget: int = 20
) -> Iterator[list[dict[str, Any]]]:
    """Draw candidates, the same whatever their scores; a larger budget begins with those of a smaller.

    A space of lists is drawn from without replacement. As soon as one parameter has a range, every value is
    drawn on its own, as scikit-learn's `ParameterSampler` does.

    Parameters
    ----------
    space : mapping of str to sequence or Range
    seed : int
    budget : int
        Number of candidates; fewer if the space has fewer.
    """
    generator = np.random.default_rng(seed)
    lists = {name: values for name, values in space.items() if not isinstance(values, Range)}
    if len(lists) == len(space):
        shape = [len(values) for values in lists.values()]
        chosen = generator.permutation(math.prod(shape))[:budget]
        places = np.stack(np.unravel_index(chosen, shape), axis=1) if shape else np.empty((1, 0), dtype=int)
        yield [
            {name: values[place] for (name, values), place in zip(lists.items(), row, strict=True)}
            for row in places.tolist()
        ]
        return
    yield [
        {name: _at(values, share) for (name, values), share in zip(space.items(), row, strict=True)}
        for row in generator.random((budget, len(space))).tolist()
    ]


def _at(values: Sequence[Any] | Range, share: float) -> Any:
    return values.at(share) if isinstance(values, Range) else values[int(share * len(values))]
