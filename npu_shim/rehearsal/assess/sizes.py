"""Sizes of tensors."""

from __future__ import annotations

from npu_shim.rehearsal.assess.flat import Shape

_BYTES = {
    "bool": 1, "int8": 1, "uint8": 1, "qint8": 1, "quint8": 1, "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2,
    "qint16": 2, "quint16": 2, "float32": 4, "int32": 4, "uint32": 4, "qint32": 4, "float64": 8, "int64": 8,
    "uint64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip


def element_count(shape: Shape) -> int | None:
    """Return the number of elements of a shape; None if a size is not known."""
    if shape is None or any(size is None for size in shape):
        return None
    number = 1
    for size in shape:
        number *= size or 0
    return number


def size_bytes(dtype: str, shape: Shape) -> int | None:
    """Return the bytes of a tensor; None if they are not known. Strings, resources and variants count nothing."""
    width = _BYTES.get(dtype, 0)
    number = element_count(shape) if width else 0
    return None if number is None else number * width
