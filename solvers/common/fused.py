"""A product and a sum with one rounding, in loops that LLVM vectorises: the same bits on every processor."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def multiply_add(typing_context, a, b, c):
    """Return ``a · b + c``, rounded once."""

    def codegen(context, builder, signature, args):
        kind = ir.DoubleType()
        function_type = ir.FunctionType(kind, [kind] * 3)
        function = builder.module.declare_intrinsic("llvm.fma", [kind], function_type)
        return builder.call(function, args)

    return types.float64(types.float64, types.float64, types.float64), codegen
