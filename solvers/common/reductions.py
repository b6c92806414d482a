"""The smaller and the larger of two values, in loops that LLVM vectorises.

It does so with a minimum over many floats only where it is told that none is NaN and that the sign of zero
does not matter. Values that do not count are better moved out of the way by adding a large one than by a
choice between two values, which is not vectorised.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_FLAGS = ("nnan", "nsz")


def _reduction(name):
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
