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

from solvers.common.compile import inlined, inner
from solvers.common.fused import multiply_add
from solvers.common.reductions import smaller_of

NEVER = np.float32(1e30)
"""Number added to the value of a sample that must not be chosen."""
MIN_INDEX_BITS = np.int64((1 << 13) - 1)


@intrinsic
def key_of(typing_context, x, i, index_bits):
    """Return the key of a float32: the value with its lowest bits replaced by an index.

    Parameters
    ----------
    typing_context : object
        Context in which numba infers types.
    x : float32
        Number to convert.
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


@inner
def move(F, K_i, K_j, delta, level, blocked, base, unit, bits):
    """Do ``F += delta (K_i - K_j)``, renew its float32 copy, and choose about the lowest F.

    Parameters
    ----------
    F : array (m,)
        Gradient, changed in place.
    K_i, K_j : arrays (m,)
        Kernel values of samples i and j with all samples.
    delta : float
        Weight that moves.
    level : float32 array (m,)
        Receives ``(F - base) unit``.
    blocked : float32 array (m,)
        `NEVER` where a sample must not be chosen, else 0.
    base, unit : float
        Offset and scale of `level`.
    bits : int64
        Bits of a key that contain the index.

    Returns
    -------
    float32
        Key of about the lowest F of the other samples.
    """
    best, offset = NEVER, -base * unit
    for t in range(F.size):
        value = multiply_add(delta, np.float64(K_i[t]) - np.float64(K_j[t]), F[t])
        F[t] = value
        near = np.float32(multiply_add(value, unit, offset))
        level[t] = near
        best = smaller_of(best, key_of(near + blocked[t], t, bits))
    return best
