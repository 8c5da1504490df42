"""Casts, layouts, and clearing of memory that the compiler adds between ops."""

from __future__ import annotations

from typing import Sequence

from npu_shim.rehearsal.predict.device_graph import (
    FILTER,
    IMAGE,
    KEPT,
    PLAIN,
    PRODUCT,
    Op,
    Use,
    Value,
    in_topological_order,
    readers_of,
    types_pattern,
)

_ANY, _IMAGES, _PRODUCTS, _CLEARED = map(types_pattern, ("any layout", "convolution layout", "product", "cleared"))
_VECTOR = "vector"  # of a batch normalization; it lies as the device wants it
_CAST, _MOVE = "Cast", "TransData"
_IN_FLOAT = ("BN",)  # the vectors of a batch normalization stay in float32


def with_casts(ops: Sequence[Op], half: str) -> list[Op]:
    """Return ops with a cast where the type in memory is another than an op reads.

    Mixed precision changes tensors of float32 only. A product whose readers all want float32 writes that itself.
    """
    ops = list(in_topological_order(ops))
    readers = readers_of(ops)
    for op in ops:
        of_product = op.outputs[0] if _PRODUCTS.match(op.type) and len(op.outputs) == 1 else None
        if of_product is not None and of_product.stored != of_product.dtype:
            if readers.get(of_product) and not any(reader.is_half for reader in readers[of_product]):
                of_product.stored = of_product.dtype
    result: list[Op] = []
    cast: dict[tuple[Value, str], Value] = {}
    for op in ops:
        for place, use in enumerate(op.inputs):
            value, wanted = use.value, half if op.is_half and not _is_vector(op, place) else "float32"
            if value.dtype != "float32" or value.stored == wanted or value.kind == KEPT or _is_free_constant(value):
                continue
            if (value, wanted) not in cast:
                other = Value(value.shape, value.dtype)
                other.stored, other.axes = wanted, value.axes
                result.append(Op(_CAST, [Use(value, value.shape)], [other], like=op))
                cast[value, wanted] = other
            op.inputs[place] = Use(cast[value, wanted], use.shape)
        result.append(op)
    return result


def _is_vector(op: Op, place: int) -> bool:
    return op.type.startswith(_IN_FLOAT) and len(op.inputs[place].shape) <= 1


def _is_free_constant(value: Value) -> bool:
    return value.kind == "constant" or value.is_scalar() and value.maker is None


def with_layouts(ops: Sequence[Op], family: str) -> list[Op]:
    """Give each tensor a layout, and return ops with a TransData where an op needs another one."""
    ops = list(in_topological_order(ops))
    _set_filter_layouts(ops)
    result: list[Op] = []
    moved: dict[tuple[Value, str, tuple[int, ...]], Value] = {}
    for op in ops:
        wanted = _wanted_layouts(op, family)
        for place, use in enumerate(op.inputs):
            op.inputs[place] = _in_layout(use, wanted[place], op, result, moved)
        result.append(op)
    return result


def _set_filter_layouts(ops: Sequence[Op]) -> None:
    """Let a filter, the variable that is cast to it, and those of its optimizer lie in blocks of the matrix unit."""
    for op in ops:
        if op.filter is not None:
            value: Value | None = op.inputs[op.filter].value
            axes = value.axes if value is not None else ""
            while value is not None and value.kind != "constant":
                value.layout, value.axes = FILTER, axes
                is_cast = value.maker is not None and value.maker.type == _CAST
                value = value.maker.inputs[0].value if is_cast and value.maker else None
    for op in ops:
        lead = op.inputs[0].value if op.inputs and op.type.startswith("Apply") else None
        for use in op.inputs:
            if lead is not None and lead.layout == FILTER and use.value.kind == "variable" and use.shape == lead.shape:
                use.value.layout, use.value.axes = FILTER, lead.axes


def _wanted_layouts(op: Op, family: str) -> list[str]:
    """Return the layout of each input, and set those of the outputs."""
    if op.axes:
        for value in op.outputs:
            if len(value.shape) == len(op.axes) and not value.axes:
                value.layout, value.axes = IMAGE, op.axes
            elif value.axes:
                value.layout = FILTER
            elif op.type.startswith("BN"):
                value.layout = IMAGE
        return [_layout_of_image_op(op, place) for place in range(len(op.inputs))]
    if _PRODUCTS.match(op.type) and family == "910":
        op.outputs[0].layout = PRODUCT
        return [PRODUCT if len(use.shape) > 1 else PLAIN for use in op.inputs]
    if op.type == "ConfusionTransposeD":
        op.outputs[0].layout = PRODUCT
        return [PRODUCT]
    if _ANY.match(op.type) and op.inputs:
        return _follow_largest_input(op)
    return [PLAIN] * len(op.inputs)


def _layout_of_image_op(op: Op, place: int) -> str:
    if place == op.filter:
        return FILTER
    rank = len(op.inputs[place].shape)
    return IMAGE if rank == len(op.axes) else _VECTOR if op.type.startswith("BN") and rank == 1 else PLAIN


def _follow_largest_input(op: Op) -> list[str]:
    """Let an op that takes any layout have that of its largest blocked input, if this is as large as its result.

    A variable stays where it is: what changes it, or is added to it, moves there.
    """
    blocked = [use for use in op.inputs if use.value.layout != PLAIN and use.shape == use.value.shape]
    lead = max(blocked, key=lambda use: len(use.shape), default=None)
    same = [use for use in op.inputs if lead is not None and use.shape == lead.shape]
    larger = any(len(use.shape) > len(lead.shape) for use in op.inputs) if lead else False
    stays = (
        any(use.value.kind == "variable" and use.value.layout != lead.value.layout for use in same) if lead else False
    )
    if lead is None or larger or stays:
        return [PLAIN] * len(op.inputs)
    op.axes = lead.value.axes
    for value in op.outputs:
        if value.shape == lead.shape or len(value.shape) == len(lead.shape) and lead.value.layout == IMAGE:
            value.layout, value.axes = lead.value.layout, lead.value.axes
    return [lead.value.layout if use in same else PLAIN for use in op.inputs]


def _in_layout(
    use: Use, wanted: str, op: Op, result: list[Op], moved: dict[tuple[Value, str, tuple[int, ...]], Value]
) -> Use:
    """Return a tensor in a layout, with the op that moves it there if it is in another one."""
    value = use.value
    if wanted == _VECTOR or value.mask_of is not None or value.dtype == "uint16" or _is_free_constant(value):
        return use
    seen = tuple(use.shape)
    if len(value.shape) < 2:  # a vector lies in blocks as it lies without
        return use
    if value.layout != PLAIN and (value.layout != wanted or seen != value.shape):
        plain = moved.get((value, PLAIN, value.shape))
        if plain is None:
            plain = moved[value, PLAIN, value.shape] = _value_in_layout(value, value.shape, PLAIN, op)
            result.append(Op(_MOVE, [Use(value, value.shape)], [plain], like=op))
        value = plain
    if value.layout == wanted or len(seen) < 2:
        return Use(value, seen)
    other = moved.get((value, wanted, seen))
    if other is None:
        other = moved[value, wanted, seen] = _value_in_layout(value, seen, wanted, op)
        result.append(Op(_MOVE, [Use(value, seen)], [other], like=op))
    return Use(other, seen)


def _value_in_layout(value: Value, shape: tuple[int, ...], layout: str, op: Op) -> Value:
    result = Value(shape, value.dtype)
    result.stored, result.layout = value.stored, layout
    result.axes = "" if layout == PLAIN else value.axes if layout == FILTER and value.axes else op.axes
    return result


def with_clears(ops: Sequence[Op], family: str) -> list[Op]:
    """Return ops with one before each whose cores add to its result, which sets it to zero."""
    result = []
    for op in ops:
        parts = op.type.replace("FusionOp_", "").split("_")
        if any(_CLEARED.match(part) for part in parts):
            sums = [Use(value, value.shape) for value in op.outputs if value.stored == "float32"]
            result.append(Op("AtomicAddrClean" if family == "910" else "MemSet", sums, [], like=op))
        result.append(op)
    return result
