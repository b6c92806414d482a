"""Fused multiply-add in loops that LLVM vectorises, with equal bits on every processor."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def multiply_add(typing_context, a, b, c):
    """Return ``a · b + c``, rounded once.

    Parameters
    ----------
    typing_context : object
        Context in which numba infers types.
    a, b, c : float64
        Factors and summand.

    Returns
    -------
    tuple
        Signature and code generator, as numba expects. The compiled call returns a float64.
    """

    def codegen(context, builder, signature, args):
        kind = ir.DoubleType()
        function_type = ir.FunctionType(kind, [kind] * 3)
        function = builder.module.declare_intrinsic("llvm.fma", [kind], function_type)
        return builder.call(function, args)

    return types.float64(types.float64, types.float64, types.float64), codegen
