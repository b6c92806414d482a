"""What becomes of the trainings of some machines for every C of a path."""

from typing import NamedTuple

import numpy as np

# What a point was reached by; the bits of `method` add up over the blocks of one training.
PAIR_STEPS, SUPPORT_NEWTON, LOW_RANK = 1, 2, 4
METHOD_NAMES = {LOW_RANK: "low_rank", PAIR_STEPS: "pair_steps", SUPPORT_NEWTON: "support_newton"}


class Outcomes(NamedTuple):
    """Arrays of shape (n_subproblems, n_C), which the block solvers fill."""

    objectives: np.ndarray
    gaps: np.ndarray
    iterations: np.ndarray  # int64: pair steps and Newton rounds
    clipped: np.ndarray  # int64: steps of the hull that the weight at hand cut short
    statuses: np.ndarray  # int64, of those of `solvers.common.status`
    converged: np.ndarray  # bool: whether the tolerance is certified to hold
    supports: np.ndarray  # int64
    evaluations: np.ndarray  # int64
    methods: np.ndarray  # int64: bits of `METHOD_NAMES`
    costs: np.ndarray  # of the work, in any unit
    biases: (
        np.ndarray
    )  # (n_subproblems, n_C, classes of a machine): y_t·b of each, where the solver finds them

    def of_subproblem(self, k):
        """Return views of the arrays' k-th rows."""
        return Outcomes(*(values[k] for values in self))


def new_outcomes(n_subproblems, n_C, n_members, order="C", n_matrices=None):
    """Allocate them, in C or Fortran order; with `n_matrices` one after the other, for that many."""
    shape = (n_subproblems, n_C) if n_matrices is None else (n_matrices, n_subproblems, n_C)
    biases = np.zeros((*shape, n_members))
    types = {"objectives": float, "gaps": float, "costs": float, "converged": np.bool_}
    names = (name for name in Outcomes._fields if name != "biases")
    arrays = {name: np.zeros(shape, types.get(name, np.int64), order) for name in names}
    return Outcomes(**arrays, biases=biases)


def method_names(methods):
    """Spell out the bits of `methods`, as in ``"pair_steps+support_newton"``."""
    return "+".join(name for bit, name in METHOD_NAMES.items() if methods & bit)
