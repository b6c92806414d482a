"""Index of the smallest or largest of many float32 values, found in a loop that LLVM vectorises.

`solvers.common.pair_selection` does this with integers of 64 bits, eight in a register of AVX-512. Here
the index takes the lowest bits of a float32's mantissa, and keys are compared as floats: sixteen in a
register (`solvers.common.reductions`). The choice is approximate: 13 bits of index leave a relative
resolution of 2^-10.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from solvers.common.compile import inlined

MIN_INDEX_BITS = np.int64((1 << 13) - 1)


@intrinsic
def key_of(typing_context, x, i, index_bits):
    """Put the index ``i`` into the bits ``index_bits`` of a float32."""

    def codegen(context, builder, signature, args):
        word = ir.IntType(32)
        value = builder.bitcast(args[0], word)
        index, bits = (builder.trunc(arg, word) for arg in args[1:])
        key = builder.or_(builder.and_(value, builder.not_(bits)), index)
        return builder.bitcast(key, ir.FloatType())

    return types.float32(types.float32, types.int64, types.int64), codegen


@intrinsic
def index_of(typing_context, key, index_bits):
    """Return the index that a key carries."""

    def codegen(context, builder, signature, args):
        value = builder.zext(builder.bitcast(args[0], ir.IntType(32)), ir.IntType(64))
        return builder.and_(value, args[1])

    return types.int64(types.float32, types.int64), codegen


@inlined
def bits_for(n):
    """Bits of a key that hold an index below ``n``."""
    bits = MIN_INDEX_BITS
    while bits < n - 1:
        bits = 2 * bits + 1
    return bits
