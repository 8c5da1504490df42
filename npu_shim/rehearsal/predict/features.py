"""Bytes, operations and single rows of an op of the device, by its shapes in memory: its time depends on them.

Shapes are those of a profile, in the layout in memory: NC1HWC0, FRACTAL_Z and FRACTAL_NZ have blocks of 16 that are
filled with zeros, and the device moves and multiplies the zeros, too.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from typing import Iterable, NamedTuple, Sequence

# The ops of the matrix unit, with what is fused into them.
MATRIX = re.compile(r"MatMul|Conv[23]D|Attention|Gemm|Einsum", re.I)
_TILE = 16
_TYPES = {"FLOAT": 4, "DOUBLE": 8, "BOOL": 1, "HALF": 2}  # bytes of those without a number of bits
_BY_INDEX = re.compile(r"(Gather|Embedding|Index|Scatter|UnsortedSegment|Sparse(Gather|Apply)|Lookup)")
_READS_ROWS = re.compile(r"(?!.*Grad)(Gather|Embedding|Index|Scatter|Sparse(Gather|Apply)|Lookup)")
_WRITES_ONLY = re.compile(r"ZerosLike|OnesLike|Fill")
_REDUCES = re.compile(r"Reduce|ArgM|Softmax|Norm|BiasAddGrad|NLLLoss|TopK|Sort|Cumsum")
_MOVES = re.compile(r"Slice|Split|Concat|Transpose|Pad|Tile|Broadcast|Pack|AsStrided|TransData")
_BLOCKED = ("FRACTAL", "NC1HWC0", "NDC1")
_BURST = 32  # bytes that the device moves at once


def product_of_sizes(sizes: Iterable[int]) -> int:
    """Return the number of elements of a shape."""
    return functools.reduce(operator.mul, sizes, 1)


class Tensor(NamedTuple):
    """A tensor in the memory of the device: its shape there, type and layout."""

    shape: Sequence[int]
    dtype: str
    layout: str = "ND"

    def size(self) -> float:
        """Return its bytes."""
        return product_of_sizes(self.shape) * element_size_of_type(self.dtype)

    def matrix_shape(self) -> list[int]:
        """Return the shape of the matrices, without the blocks of FRACTAL_NZ."""
        *batch, columns, rows, inner_rows, inner_columns = self.shape if len(self.shape) > 3 else (0, 0, 0, 0)
        is_blocked = self.layout.startswith("FRACTAL_NZ") and len(self.shape) > 3
        return [*batch, rows * inner_rows, columns * inner_columns] if is_blocked else list(self.shape)


class DeviceOp(NamedTuple):
    """An op as the device runs it; a fused op has the names of its parts as its type."""

    type: str
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]


def element_size_of_type(name: str) -> float:
    """Return the bytes of an element of a type: FLOAT16, DT_BF16, float32; 0 if it is not known."""
    plain = name.strip().upper().replace("DT_", "")
    bits = re.search(r"(\d+)$", plain)
    return int(bits.group(1)) / 8 if bits else _TYPES.get(plain, 0)


def bytes_moved(op: DeviceOp) -> float:
    """Return the bytes that an op reads and writes. A gather reads rows of its table, not the table."""
    read, written = ([tensor.size() for tensor in side] for side in (op.inputs, op.outputs))
    if _WRITES_ONLY.match(op.type):
        return sum(written)
    if _READS_ROWS.match(op.type) and read and written and read[0] == max(read):
        return sum(read[1:]) + 2 * sum(written)
    return sum(read) + sum(written)


def matrix_flops(op: DeviceOp) -> float:
    """Return the operations of a product, convolution or attention; 0 for another op, and if shapes are missing."""
    if not MATRIX.search(op.type) or len(op.inputs) < 2 or not op.outputs:
        return 0.0
    if "attention" in op.type.lower():
        backward = 2.5 if "Grad" in op.type else 1.0
        return 4.0 * product_of_sizes(op.inputs[0].shape) * max(op.inputs[1].shape[:-1], default=0) * backward
    return _convolution_flops(op) if re.search("Conv[23]D", op.type) else _product_flops(op)


def _convolution_flops(op: DeviceOp) -> float:
    """Return 2 times the positions of the result times the elements of the filter, also for both gradients.

    The gradients read the filter or the input, and the gradient of the result, after a vector of sizes in some forms.
    """
    values = [tensor for tensor in op.inputs if not tensor.dtype.upper().replace("DT_", "").startswith("INT")]
    values = values if len(values) > 1 else list(op.inputs)
    if "BackpropFilter" in op.type:
        weights, result = op.outputs[0], values[1]
    elif "BackpropInput" in op.type:  # MindSpore gives the filter second
        weights, result = values[:2] if not values[1].layout.startswith("FRACTAL_Z") else values[1::-1]
    else:
        weights, result = values[1], op.outputs[0]
    axes = re.findall(r"[A-Z]\d?", result.layout.partition(":")[0])
    if len(axes) != len(result.shape) or "N" not in axes:
        return 0.0
    positions = product_of_sizes([size for axis, size in zip(axes, result.shape) if not axis.startswith("C")])
    return 2.0 * positions * product_of_sizes(weights.shape)


def _product_flops(op: DeviceOp) -> float:
    """Return 2 times the elements of the result times the length that is summed over, sizes filled up to 16."""
    first, second, result = (tensor.matrix_shape() for tensor in (*op.inputs[:2], op.outputs[0]))
    if min(map(len, (first, second, result))) < 2 or not product_of_sizes(result):
        return 0.0
    batch = product_of_sizes(result[:-2]) if len(second) > 2 else 1
    inner = math.sqrt(product_of_sizes(first) * product_of_sizes(second) / (product_of_sizes(result) * batch))
    filled = [_TILE * math.ceil(size / _TILE - 1e-9) for size in (*result[-2:], inner)]
    return 2.0 * product_of_sizes(result[:-2]) * product_of_sizes(filled)


def rows_moved(op: DeviceOp) -> float:
    """Return the pieces of memory that an op moves one by one.

    They are the rows of a gather, of a reduction of the last axis, of a slice that cuts it, of a broadcast along it.
    """
    if MATRIX.search(op.type) or not op.inputs or not op.outputs:
        return 0.0
    if _BY_INDEX.match(op.type):
        indices = (
            product_of_sizes(tensor.shape) for tensor in op.inputs if re.match("(DT_)?U?INT", tensor.dtype, re.I)
        )
        return max(indices, default=0)
    is_blocked = any(tensor.layout.startswith(_BLOCKED) for tensor in (op.inputs[0], op.outputs[0]))
    source = max(op.inputs, key=lambda tensor: product_of_sizes(tensor.shape))
    shape, result = list(source.shape), list(max((tensor.shape for tensor in op.outputs), key=product_of_sizes))
    if is_blocked or not shape or not shape[-1]:
        return 0.0
    if _REDUCES.search(op.type):
        is_by_row = result == shape or (result and (result[-1] == 1 or result[-1] != shape[-1]))
        return product_of_sizes(shape) / shape[-1] if is_by_row else 0.0
    if _MOVES.search(op.type):
        return _rows_of_move(op.type, shape, result, source.size())
    shapes = {tuple(tensor.shape) for tensor in op.inputs if product_of_sizes(tensor.shape) > 1}
    if len(shapes) > 1 and result and result[-1]:
        most = product_of_sizes(result) * element_size_of_type(source.dtype) / _BURST
        return min(product_of_sizes(result) / result[-1], most)
    return 0.0


def _rows_of_move(name: str, shape: Sequence[int], result: Sequence[int], size: float) -> float:
    if "Transpose" in name and result and result[-1] != shape[-1]:
        return product_of_sizes(shape) / _TILE
    inner = min(shape[-1], result[-1] if result else 1)
    if "Slice" in name and len(shape) == len(result):
        inner = 1
        for before, after in zip(reversed(shape), reversed(result)):
            inner *= min(before, after)
            if before != after:
                break
    whole = product_of_sizes(shape)
    moved = max(product_of_sizes(result), 1) if product_of_sizes(result) < whole else whole
    return min(moved / max(inner, 1), size / _BURST)
