"""The work of an op by its shapes: bytes, operations of the matrix unit, and the least time that a product needs."""

from __future__ import annotations

import math
import re

from npu_shim.dumps.formats import product
from npu_shim.profiles.kinds import Signature, is_matrix
from npu_shim.rehearsal.assess.products import Product

_BYTES = {"FLOAT": 4, "DOUBLE": 8, "BOOL": 1, "HALF": 2}


def shapes(text: str) -> list[list[int]]:
    """Return the shapes of a cell like ``"8,224,224,3;3,3,3,64"``; those that are not known are empty."""
    parts = text.strip().strip('"').split(";")
    return [[int(size) for size in part.split(",")] if re.fullmatch(r"\d+(,\d+)*", part) else [] for part in parts]


def size_of(name: str) -> float:
    """Return the bytes of an element of a type: FLOAT16, DT_BF16, float32; 0 if it is not known."""
    plain = name.strip().upper().replace("DT_", "")
    bits = re.search(r"(\d+)$", plain)
    return int(bits.group(1)) / 8 if bits else _BYTES.get(plain, 0)


def moved(each: Signature) -> float:
    """Return the bytes that an op reads and writes at least; 0 if its shapes are not known."""
    tensors = [*zip(shapes(each.shapes), each.types.split(";"))]
    tensors += zip(shapes(each.out_shapes), each.out_types.split(";"))
    return sum(product(shape) * size_of(name) for shape, name in tensors if shape)


def matrix_flops(each: Signature) -> float:
    """Return the operations of a product or convolution; 0 for another op, and if its shapes are not known."""
    first, second, made = [*shapes(each.shapes), []][:2] + shapes(each.out_shapes)[:1]
    if not is_matrix(each) or not (first and second and made):
        return 0.0
    if "conv" in each.type.lower():
        layout = each.out_formats.split(";")[0]
        if "Backprop" in each.type or sorted(layout) != sorted("NHWCD"[: len(made)]):
            return 0.0
        return 2.0 * product(made) // made[layout.index("C")] * product(second)
    batch = product(made[:-2]) if len(made) > 2 and len(second) > 2 else 1
    return 2.0 * product(made) * math.sqrt(product(first) * product(second) / (product(made) * batch))


def bound(each: Signature, device: Product) -> float:
    """Return the nanoseconds that a run of an op takes at least, by its operations and its bytes."""
    return 1e9 * max(matrix_flops(each) / device.flops, moved(each) / device.bandwidth)
