import ctypes

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from orchestrator.training.shared_arrays import checksum, fresh_view, private_copy, read_only, read_only_view
from tests.messages import raises

DTYPES = [np.float64, np.float32, np.int64, np.int32, np.bool_, np.dtype("<U5")]

ANY_ARRAY = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays(dtype, array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=40))
)


def same(A, B):
    return A.dtype == B.dtype and A.shape == B.shape and A.tobytes() == B.tobytes()


def bases(X):
    """Everything that leads to the memory of an array from Python."""
    while X is not None:
        yield X
        X = getattr(X, "base", None) if isinstance(X, np.ndarray) else getattr(X, "obj", None)


@given(ANY_ARRAY)
def test_values_stay_the_same(X):
    shared = read_only(X)
    for Y in (shared, fresh_view(shared), private_copy(shared), fresh_view(read_only_view(X))):
        assert same(X, Y)
    assert private_copy(shared).flags.writeable


@pytest.mark.parametrize("share", [read_only, lambda X: fresh_view(read_only(X))])
def test_no_way_from_python_leads_to_memory_that_can_be_written(share):
    for thing in bases(share(np.arange(12.0).reshape(4, 3))):
        if isinstance(thing, np.ndarray):
            with raises(ValueError, "WRITEABLE"):
                thing.flags.writeable = True
        else:
            assert isinstance(thing, bytes) or thing.readonly


def test_a_view_cannot_be_made_writeable_while_its_owner_goes_on_writing():
    X = np.zeros((4, 3))
    view = fresh_view(read_only_view(X))
    with raises(ValueError, "WRITEABLE"):
        view.flags.writeable = True
    X[1] = 5
    assert (view[1] == 5).all()


def test_what_is_set_on_a_view_stays_its_own():
    shared = read_only(np.arange(12.0).reshape(4, 3))
    view = fresh_view(shared)
    for thing in bases(view):
        assert thing is not shared
    assert same(fresh_view(shared), np.arange(12.0).reshape(4, 3))


def test_sparse_matrices_are_shared_part_by_part():
    X = scipy.sparse.random(30, 20, 0.2, format="csr", random_state=0)
    shared = read_only(X)
    view = fresh_view(shared)
    for name in ("data", "indices", "indptr"):
        assert same(getattr(view, name), getattr(X, name))
        with raises(ValueError, "WRITEABLE"):
            getattr(view, name).flags.writeable = True
    view.data = view.data * 0
    assert (fresh_view(shared) != X).nnz == 0
    copy = private_copy(shared)
    copy.data[:] = 0
    assert (shared != X).nnz == 0


@given(ANY_ARRAY.filter(lambda X: X.nbytes), st.data())
def test_any_changed_byte_changes_the_checksum(X, data):
    shared = read_only(X)
    before = checksum(shared)
    place = data.draw(st.integers(0, X.nbytes - 1))
    flipped = bytearray(shared.tobytes())
    flipped[place] ^= data.draw(st.integers(1, 255))
    assert checksum(shared) == before
    assert checksum(np.ndarray(X.nbytes, np.uint8, buffer=flipped).reshape(-1)) != checksum(
        np.ndarray(X.nbytes, np.uint8, buffer=shared.tobytes())
    )


@pytest.mark.parametrize("shape", [(30, 4), (3000, 40)])
@pytest.mark.parametrize("axis", [0, 1])
def test_values_that_change_places_change_the_checksum(shape, axis):
    X = np.random.default_rng(0).random(shape)
    assert checksum(np.ascontiguousarray(np.flip(X, axis))) != checksum(X)


def test_memory_written_through_a_pointer_is_noticed():
    shared = read_only(np.ones((30, 4)))
    before = checksum(shared)
    ctypes.memset(fresh_view(shared).ctypes.data, 0, 8)
    assert checksum(shared) != before
