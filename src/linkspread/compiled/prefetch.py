"""Rows of a block that are on their way into the cache before they are read.

A product of a graph with a block waits for memory at every edge that leads far away,
though all its rows are known beforehand: asked for some edges ahead, they arrive in
time.
"""

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

# Edges ahead: measured for rows of 32 bytes to 3 kilobytes, all gain most near here.
AHEAD = 16
# Rows of a graph, which have some edges each.
ROWS_AHEAD = 4
LINE_BYTES = 64
# A block that fits the cache of one core is there anyway.
SMALL_BYTES = 1 << 20


@intrinsic
def fetch(_, block, row, line):
    """Ask for a cache line from ``block[row]`` on; no error where there is none."""

    def generate(context, builder, signature, arguments):
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        row, line = (
            context.cast(builder, value, kind, types.intp)
            for value, kind in zip(arguments[1:], signature.args[1:], strict=True)
        )
        # By bytes: the size of an entry would have to be looked up at every edge.
        start = builder.mul(row, cgutils.unpack_tuple(builder, struct.strides)[0])
        start = builder.add(start, builder.mul(line, line.type(LINE_BYTES)))
        place = builder.bitcast(struct.data, ir.IntType(8).as_pointer())
        place = builder.gep(place, [start])
        number = ir.IntType(32)
        takes = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        instruction = builder.module.declare_intrinsic(
            "llvm.prefetch", [place.type], takes
        )
        # To be read, into the nearest cache, as data.
        builder.call(instruction, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(block, row, line), generate


@njit
def lines_to_fetch(block):
    """Return how many cache lines of each row of a block are worth asking for."""
    if block.size * block.itemsize <= SMALL_BYTES:
        return 0
    return (block.shape[1] * block.itemsize + LINE_BYTES - 1) // LINE_BYTES
