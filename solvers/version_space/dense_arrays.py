"""Arrays of n × n values: they are counted before a training, and refused if they exceed `cache_size`."""

import numpy as np

from solvers.common.resources import require_memory


def require_dense(n_samples, n_arrays, cache_bytes, name):
    """Raise if the n × n arrays of a training exceed its memory.

    Parameters
    ----------
    n_samples : int
        Number of samples of the subproblem.
    n_arrays : int
        Number of arrays of n × n float64 values.
    cache_bytes : float
        Memory allowed, in bytes.
    name : str
        Name of the estimator, for the message.

    Raises
    ------
    MemoryError
        The arrays are larger than the memory allowed, or than the free memory.
    """
    n_bytes = 8.0 * n_arrays * n_samples**2
    if n_bytes > cache_bytes:
        fits = int(np.sqrt(cache_bytes / (8.0 * n_arrays)))
        raise MemoryError(
            f"{name}: {n_samples:,} samples of a subproblem need {n_arrays} arrays of {n_samples:,} × "
            f"{n_samples:,} values, {n_bytes / 1e6:,.0f} MB; cache_size={cache_bytes / 1e6:g} MB allows "
            f"{fits:,} samples. Set cache_size to at least {np.ceil(n_bytes / 1e6):.0f}, or use fewer samples"
        )
    require_memory(n_bytes, f"the training of {name} on {n_samples:,} samples", "use fewer samples")
