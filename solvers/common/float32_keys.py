"""Index of the smallest or largest of many float32 values, in a loop that LLVM vectorises.

`solvers.common.pair_selection` does the same with integers of 64 bits, eight in an AVX-512 register. Here
the index replaces the lowest bits of a float32's mantissa, and keys are compared as floats, sixteen in a
register (`solvers.common.reductions`). The choice is approximate: 13 index bits leave a relative resolution
of 2^-10.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from solvers.common.compile import inlined

MIN_INDEX_BITS = np.int64((1 << 13) - 1)


@intrinsic
def key_of(typing_context, x, i, index_bits):
    """Return the key of a float32: the value with its lowest bits replaced by an index.

    Parameters
    ----------
    typing_context : object
        Context in which numba infers types.
    x : float32
        Value.
    i : int64
        Index, between 0 and `index_bits`.
    index_bits : int64
        Mask of the bits that hold the index.

    Returns
    -------
    tuple
        Signature and code generator, as numba expects. The compiled call returns a float32.
    """

    def codegen(context, builder, signature, args):
        word = ir.IntType(32)
        value = builder.bitcast(args[0], word)
        index, bits = (builder.trunc(arg, word) for arg in args[1:])
        key = builder.or_(builder.and_(value, builder.not_(bits)), index)
        return builder.bitcast(key, ir.FloatType())

    return types.float32(types.float32, types.int64, types.int64), codegen


@intrinsic
def index_of(typing_context, key, index_bits):
    """Return the index that a key contains.

    Parameters
    ----------
    typing_context : object
        Context in which numba infers types.
    key : float32
        Key made by `key_of`.
    index_bits : int64
        Mask of the bits that hold the index.

    Returns
    -------
    tuple
        Signature and code generator, as numba expects. The compiled call returns an int64.
    """

    def codegen(context, builder, signature, args):
        value = builder.zext(builder.bitcast(args[0], ir.IntType(32)), ir.IntType(64))
        return builder.and_(value, args[1])

    return types.int64(types.float32, types.int64), codegen


@inlined
def bits_for(n):
    """Return the mask of the bits that hold an index.

    Parameters
    ----------
    n : int
        Number of values; indices are below it.

    Returns
    -------
    int64
        Mask of at least 13 bits.
    """
    bits = MIN_INDEX_BITS
    while bits < n - 1:
        bits = 2 * bits + 1
    return bits
