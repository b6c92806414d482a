"""Minima and sums over arrays, in loops that LLVM vectorises.

LLVM vectorises a float minimum only under the assumption that no value is NaN and that the sign of zero does
not matter. To exclude a value, add a large number to it: a choice between two values is not vectorised. Sums
consist of eight partial sums, because each addition to a single sum would wait for the last one.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from solvers.common.compile import inner

_FLAGS = ("nnan", "nsz")


def _reduction(name):
    """Return the intrinsic of a minimum or maximum of two floats, with `_FLAGS`.

    Parameters
    ----------
    name : {"minnum", "maxnum"}
        Name of LLVM's intrinsic.

    Returns
    -------
    function
        Intrinsic for two float32 or two float64.
    """

    @intrinsic
    def reduce(typing_context, x, y):
        if x != y or x not in (types.float32, types.float64):
            return None

        def codegen(context, builder, signature, args):
            kind = args[0].type
            function_type = ir.FunctionType(kind, [kind, kind])
            function = builder.module.declare_intrinsic(f"llvm.{name}", [kind], function_type)
            return builder.call(function, args, fastmath=_FLAGS)

        return x(x, x), codegen

    return reduce


smaller_of, larger_of = _reduction("minnum"), _reduction("maxnum")


@inner
def dot(a, b):
    """Return a·b by eight partial sums. They keep the vector units busy and the order of summation fixed.

    Parameters
    ----------
    a, b : array (n,)
        Vectors to multiply.

    Returns
    -------
    float
        Inner product.
    """
    n = a.size
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for i in range(0, n - 7, 8):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
        s4 += a[i + 4] * b[i + 4]
        s5 += a[i + 5] * b[i + 5]
        s6 += a[i + 6] * b[i + 6]
        s7 += a[i + 7] * b[i + 7]
    for i in range(n - n % 8, n):
        s0 += a[i] * b[i]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@inner
def total_size(values):
    """Return the sum of absolute values.

    Parameters
    ----------
    values : array (n,)
        Values to add up.

    Returns
    -------
    float
        Sum of their absolute values.
    """
    s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    whole = values.size - values.size % 8
    for t in range(0, whole, 8):
        s0 += abs(values[t])
        s1 += abs(values[t + 1])
        s2 += abs(values[t + 2])
        s3 += abs(values[t + 3])
        s4 += abs(values[t + 4])
        s5 += abs(values[t + 5])
        s6 += abs(values[t + 6])
        s7 += abs(values[t + 7])
    total = ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))
    for t in range(whole, values.size):
        total += abs(values[t])
    return total
