"""The width of vectors in compiled loops."""

from numba import types
from numba.extending import intrinsic


@intrinsic
def use_widest_vectors(typing_context):
    """Let LLVM use vectors of 512 bits in the function that calls this, where the processor has them.

    By default it takes 256, since the first processors with wider ones slowed down. Loops that only multiply
    and add take a tenth to a fifth less time with 512.
    """

    def codegen(context, builder, signature, args):
        # llvmlite's own method knows no attributes with values.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), codegen
