"""Values of a block, against a plain computation."""

import numpy as np

from solvers.gram.block import largest_value, lowest_value


def test_extreme_values_are_nan_where_one_is():
    values = np.array([2.0, -1.5, 7.0])
    assert (lowest_value(values), largest_value(values)) == (-1.5, 7.0)
    values[1] = np.nan
    assert np.isnan(lowest_value(values))
    assert np.isnan(largest_value(values))
