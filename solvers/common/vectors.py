"""The width of vectors in compiled loops."""

from numba import types
from numba.extending import intrinsic


@intrinsic
def use_widest_vectors(typing_context):
    """Let LLVM use vectors of 512 bits in the calling function, if the processor has them.

    By default LLVM uses 256 bits, because the first processors with wider vectors slowed down. Loops that
    only multiply and add take 10 to 20 % less time with 512 bits.

    Parameters
    ----------
    typing_context : object
        Context in which numba infers types.

    Returns
    -------
    tuple
        Signature and code generator, as numba expects. The compiled call returns nothing.
    """

    def codegen(context, builder, signature, args):
        # llvmlite's own method knows no attributes with values.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), codegen
