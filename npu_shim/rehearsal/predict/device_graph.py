"""The ops of a step on the device before they have shapes in memory: tensors, ops, and the table device_ops.json."""

from __future__ import annotations

import json
import pkgutil
import re
from typing import Iterable, Iterator, NamedTuple, Pattern, Sequence

from npu_shim.rehearsal.assess.flat import Shape
from npu_shim.rehearsal.predict.features import Tensor, product_of_sizes

TABLE = json.loads(pkgutil.get_data(__name__, "device_ops.json") or b"")
KEPT = "kept"  # of a value whose type mixed precision does not change
PLAIN, IMAGE, FILTER, PRODUCT = "ND", "NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ"
_BLOCK = 16


def types_pattern(table: str) -> Pattern[str]:
    """Return the pattern of the types of a list of the table."""
    return re.compile(f"({'|'.join(' '.join(TABLE[table]).split())})$")


class Value:
    """A tensor of the device.

    Attributes:
        shape, dtype: as TensorFlow says them; unknown sizes are 1.
        stored: the type in memory, which mixed precision may reduce.
        layout: in memory.
        axes: of an image or a filter, such as "NHWC".
        maker: the op that makes it; None for a variable, a constant or an input.
        kind: "variable", "constant", KEPT or "".
        mask_of: the result of a ReLU of which this is the mask of bits.
    """

    __slots__ = ("axes", "dtype", "kind", "layout", "maker", "mask_of", "shape", "stored")

    def __init__(self, shape: Shape, dtype: str, kind: str = "") -> None:
        self.shape = tuple(1 if size is None else size for size in shape or ())
        self.dtype = self.stored = dtype
        self.kind, self.layout, self.axes = kind, PLAIN, ""
        self.maker: Op | None = None
        self.mask_of: Value | None = None

    def is_scalar(self) -> bool:
        """Return True for one element."""
        return product_of_sizes(self.shape) == 1


class Use(NamedTuple):
    """A tensor as an op reads it, perhaps in another shape than it was made in."""

    value: Value
    shape: tuple[int, ...]


class Op:
    """An op of the device.

    Attributes:
        type: on the device.
        inputs, outputs: its tensors.
        nodes: the places of the nodes that it computes.
        phase, times: when and how often it runs in a step.
        is_half: True if mixed precision reduces it.
        axes: order of the axes of its images, such as "NHWC".
        filter: place of the filter among its inputs; None without.
    """

    __slots__ = ("axes", "filter", "inputs", "is_half", "nodes", "outputs", "phase", "times", "type")

    def __init__(self, type: str, inputs: Sequence[Use], outputs: Sequence[Value], like: Op | None = None) -> None:
        self.type, self.inputs, self.outputs = type, list(inputs), list(outputs)
        self.axes = ""
        self.filter: int | None = None
        self.nodes: list[int] = list(like.nodes) if like else []
        self.phase: str = like.phase if like else ""
        self.times: int = like.times if like else 1
        self.is_half: bool = like.is_half if like else False
        for value in outputs:
            value.maker = self


def readers_of(ops: Iterable[Op]) -> dict[Value, list[Op]]:
    """Return the ops that read each tensor."""
    readers: dict[Value, list[Op]] = {}
    for op in ops:
        for use in op.inputs:
            readers.setdefault(use.value, []).append(op)
    return readers


def _blocks(size: int, block: int = _BLOCK) -> int:
    return -(-size // block)


def tensor_in_memory(value: Value, shape: Sequence[int], family: str) -> Tensor:
    """Return a tensor as it lies in memory."""
    dtype = value.stored.upper()
    if value.mask_of is not None:
        full = tensor_in_memory(value.mask_of, value.mask_of.shape, family)
        return Tensor((*full.shape[:-1], _blocks(full.shape[-1], 8)) if full.shape else (), "UINT8", PLAIN)
    if value.layout == IMAGE:
        block = 8 if family == "910B" and dtype == "FLOAT32" else _BLOCK
        return Tensor(_image_shape(value, block), dtype, "NDC1HWC0" if len(value.shape) == 5 else IMAGE)
    if value.layout == FILTER and len(value.shape) > 2:  # not a filter that is reshaped
        return Tensor(_filter_shape(value), dtype, FILTER)
    if value.layout == PRODUCT and len(shape) > 1:
        *batch, rows, columns = shape
        return Tensor((*batch, _blocks(columns), _blocks(rows), _BLOCK, _BLOCK), dtype, PRODUCT)
    return Tensor(tuple(shape), dtype, PLAIN)


def _image_shape(value: Value, block: int) -> tuple[int, ...]:
    if len(value.shape) == 1:
        return (1, _blocks(value.shape[0], block), 1, 1, block)
    sizes = dict(zip(value.axes, value.shape))
    spatial = [sizes[axis] for axis in "HW" if axis in sizes]
    depth = [sizes["D"]] if "D" in sizes else []
    return (sizes["N"], *depth, _blocks(sizes["C"], block), *spatial, block)


def _filter_shape(value: Value) -> tuple[int, ...]:
    """Return the shape of a filter of TensorFlow, [height, width, in, out], in blocks; M is a depthwise multiplier."""
    *kernel, channels, out = value.shape
    depthwise = value.axes.endswith("M")
    return (_blocks(channels) * product_of_sizes(kernel), 1 if depthwise else _blocks(out), _BLOCK, _BLOCK)


def in_topological_order(ops: Sequence[Op]) -> Iterator[Op]:
    """Yield ops so that each follows the makers of its inputs; in loops, the order given decides."""
    place = {op: number for number, op in enumerate(ops)}
    state: dict[Op, int] = {}
    for first in ops:
        stack = [first]
        while stack:
            op = stack[-1]
            if state.get(op) == 2:
                stack.pop()
                continue
            before = [] if state.get(op) else [use.value.maker for use in op.inputs]
            state[op] = state.get(op, 0) or 1
            waiting = [maker for maker in before if maker is not None and maker in place and maker not in state]
            if waiting:
                stack += waiting
            else:
                state[op] = 2
                stack.pop()
                yield op
