"""Random states of the machines, from the parameter `random_state`."""

from functools import lru_cache
from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state


def random_seed(random_state):
    """Make a whole number of what scikit-learn accepts as a random state."""
    if isinstance(random_state, Integral):
        if random_state < 0:
            raise ValueError(
                f"random_state must be a whole number ≥ 0, a RandomState or None; got {random_state}"
            )
        return int(random_state)
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    return int(check_random_state(random_state).randint(1 << 31))


def subproblem_seeds(seed, n_subproblems):
    """Derive a random state, a number of 64 bits but 0, for every machine of a fit.

    `SeedSequence` hashes seed and number of the machine: no two share a stream, whereas by adding them up
    machine k of seed s would have that of machine k − 1 of seed s + 1.
    """
    return _subproblem_seeds(seed, n_subproblems).copy()


@lru_cache(maxsize=64)
def _subproblem_seeds(seed, n_subproblems):
    states = np.random.SeedSequence(seed).generate_state(n_subproblems, np.uint64)
    return np.maximum(states, np.uint64(1))
