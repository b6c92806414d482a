"""What `max_iter` and `max_seconds` of an estimator leave to each of its machines."""

import numpy as np

from solvers.common.clock import clock
from solvers.common.compile import njit

NO_LIMIT = int(np.iinfo(np.int64).max)


@njit
def share_of(left, n):
    """Return an equal share of what is left for n, rounded up."""
    return left // n + (left % n > 0)


class Budget:
    """Iterations and time of one `fit`, shared out among its machines one after the other.

    A machine gets an equal share of what is left; what it does not use goes to those after it.

    Parameters
    ----------
    max_iter : int
        −1 for no limit.
    max_seconds : float or None
    n_subproblems : int
    started : float
        `solvers.common.clock.clock()` at which the seconds begin to count.
    """

    def __init__(self, max_iter, max_seconds, n_subproblems, started):
        self._iterations = NO_LIMIT if max_iter == -1 else int(max_iter)
        self._end = np.inf if max_seconds is None else started + max_seconds
        self._subproblems = n_subproblems

    def share(self):
        """Return the next machine's limit of the iterations, and its deadline on the clock."""
        now = clock()
        max_iter = self._iterations
        if max_iter != NO_LIMIT:
            max_iter = share_of(max_iter, self._subproblems)
        return max_iter, now + (self._end - now) / self._subproblems

    def spend(self, n_iter):
        """Note that the machine is done, and how many iterations it took."""
        if self._iterations != NO_LIMIT:
            self._iterations = max(0, self._iterations - int(n_iter))
        self._subproblems -= 1
