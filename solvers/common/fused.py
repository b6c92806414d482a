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
    a, b, c : float64, or float32
        Factors and summand, all of one type.

    Returns
    -------
    tuple
        Signature and code generator, as numba expects. The compiled call returns a number of the same type.
    """
    if a != b or b != c or a not in (types.float32, types.float64):
        return None

    def codegen(context, builder, signature, args):
        kind = args[0].type
        function_type = ir.FunctionType(kind, [kind] * 3)
        function = builder.module.declare_intrinsic("llvm.fma", [kind], function_type)
        return builder.call(function, args)

    return a(a, a, a), codegen
