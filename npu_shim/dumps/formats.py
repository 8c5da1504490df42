"""Layouts of the device, brought back to the shape in the graph.

A layout names the axes of a tensor by letters: N, C, D, H and W. The engine splits C into blocks of C0, and N into
blocks of N0, and fills the last block with zeros:

    NC1HWC0       N, C1, H, W, C0               NDC1HWC0      N, D, C1, H, W, C0
    FRACTAL_Z     C1*H*W, N1, N0, C0            FRACTAL_Z_3D  D*C1*H*W, N1, N0, C0
    FRACTAL_NZ    ..., columns/C0, rows/16, 16, C0

The weights of a convolution with groups lie in FRACTAL_Z block by block: E groups share a block, each on its part of C
and N.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Iterator, Sequence

import numpy as np

from npu_shim.dumps.messages import DumpError

# The engine's formats in the order of their numbers.
_NAMES = """
NCHW NHWC ND NC1HWC0 FRACTAL_Z NC1C0HWPAD NHWC1C0 FSR_NCHW FRACTAL_DECONV C1HWNC0 FRACTAL_DECONV_TRANSPOSE
FRACTAL_DECONV_SP_STRIDE_TRANS NC1HWC0_C04 FRACTAL_Z_C04 CHWN FRACTAL_DECONV_SP_STRIDE8_TRANS HWCN NC1KHKWHWC0
BN_WEIGHT FILTER_HWCK HASHTABLE_LOOKUP_LOOKUPS HASHTABLE_LOOKUP_KEYS HASHTABLE_LOOKUP_VALUE HASHTABLE_LOOKUP_OUTPUT
HASHTABLE_LOOKUP_HITS C1HWNCoC0 MD NDHWC FRACTAL_ZZ FRACTAL_NZ NCDHW DHWCN NDC1HWC0 FRACTAL_Z_3D CN NC DHWNC
FRACTAL_Z_3D_TRANSPOSE FRACTAL_ZN_LSTM FRACTAL_Z_G RESERVED ALL NULL ND_RNN_BIAS FRACTAL_ZN_RNN NYUV NYUV_A NCL
FRACTAL_Z_WINO C1HWC0
""".split()
PLAIN = ("NHWC", "NCHW", "HWCN", "CHWN", "NDHWC", "NCDHW", "DHWCN", "DHWNC")
_OF_WEIGHTS = ("HWCN", "NCHW", "DHWCN", "NCDHW", "NHWC", "NDHWC")
_DIMENSIONS = {"NC1HWC0": 5, "NC1HWC0_C04": 5, "NDC1HWC0": 6, "FRACTAL_Z": 4, "FRACTAL_Z_3D": 4}
_N0 = 16


def name(number: int) -> str:
    """Return the name of a format."""
    return _NAMES[number] if number < len(_NAMES) else f"format {number}"


def to_original(
    array: np.ndarray, layout: str, shape: Sequence[int], original: str = "", groups: int = 1
) -> np.ndarray:
    """Return a tensor in the shape that it has in the graph.

    Args:
        array: in the shape in memory.
        layout: of it.
        shape: in the graph.
        original: layout in the graph; empty if unknown. Shapes decide, and this where several fit.
        groups: of the convolution whose weights these are.
    Raises:
        DumpError: the layout is unknown, or does not fit the shape.
    """
    shape = tuple(shape)
    moved = layout in PLAIN and original in PLAIN and layout != original
    if array.size == 0 or (layout not in _DIMENSIONS and layout != "FRACTAL_NZ" and array.shape == shape and not moved):
        return array.reshape(shape) if array.size == _product(shape) else _misfit(array, layout, shape)
    if layout == "FRACTAL_NZ":
        return _from_nz(array, shape)
    if layout in PLAIN or layout not in _DIMENSIONS:
        return _from_plain(array, layout, shape, original)
    if array.ndim != _DIMENSIONS[layout]:
        return _misfit(array, layout, shape)
    for letters in _candidates(shape, original, _OF_WEIGHTS if layout.startswith("FRACTAL_Z") else PLAIN):
        found = _axes(array, layout, dict(zip(letters, shape)), groups)
        if found is not None:
            axes, made = found
            made = made[tuple(slice(dict(zip(letters, shape)).get(axis, 1)) for axis in axes)]
            made = made.reshape([n for axis, n in zip(axes, made.shape) if axis in letters])
            kept = [axis for axis in axes if axis in letters]
            return made.transpose([kept.index(axis) for axis in letters])
    return _misfit(array, layout, shape)


def _candidates(shape: tuple[int, ...], original: str, layouts: Sequence[str] = PLAIN) -> Iterator[str]:
    """Return the letters that the axes of a shape may have, the likeliest first."""
    if len(original) == len(shape) and original in PLAIN:
        yield original
    yield from (letters for letters in layouts if len(letters) == len(shape) and letters != original)
    if len(shape) == 1:
        yield "C"


def _axes(array: np.ndarray, layout: str, sizes: dict[str, int], groups: int) -> tuple[str, np.ndarray] | None:
    """Return the letters of the axes and the array with whole axes; None if the sizes do not fit."""
    n, c, d, h, w = (sizes.get(letter, 1) for letter in "NCDHW")
    if layout.startswith("NC1HWC0"):
        one, blocks, height, width, c0 = array.shape
        if (one, height, width) != (n, h, w) or not 0 <= blocks * c0 - c < c0 or d != 1:
            return None
        return "NCHW", array.transpose(0, 1, 4, 2, 3).reshape(one, blocks * c0, height, width)
    if layout == "NDC1HWC0":
        one, depth, blocks, height, width, c0 = array.shape
        if (one, depth, height, width) != (n, d, h, w) or not 0 <= blocks * c0 - c < c0:
            return None
        return "NCDHW", array.transpose(0, 2, 5, 1, 3, 4).reshape(one, blocks * c0, depth, height, width)
    if layout == "FRACTAL_Z" and d != 1:
        return None
    rows, n1, n0, c0 = array.shape
    if groups > 1:
        return _grouped(array, (n, c, d, h, w), groups)
    blocks = rows // max(1, d * h * w)
    if blocks * d * h * w != rows or not 0 <= blocks * c0 - c < c0 or not 0 <= n1 * n0 - n < n0:
        return None
    whole = array.reshape(d, blocks, h, w, n1 * n0, c0).transpose(0, 2, 3, 1, 5, 4)
    return "DHWCN", whole.reshape(d, h, w, blocks * c0, n1 * n0)


def _grouped(array: np.ndarray, sizes: tuple[int, int, int, int, int], groups: int) -> tuple[str, np.ndarray] | None:
    n, c, d, h, w = sizes
    rows, n1, n0, c0 = array.shape
    each = n // groups
    if d != 1 or not each or not c or n % groups:
        return None
    shared = min(_lcm(_lcm(c, c0) // c, _lcm(each, _N0) // each), groups)
    c1, g = -(-shared * c // c0), -(-groups // shared)
    if rows != g * c1 * h * w or n1 * n0 != -(-shared * each // _N0) * _N0:
        return None
    blocks = array.reshape(g, c1, h, w, n1 * n0, c0).transpose(0, 2, 3, 1, 5, 4).reshape(g, h, w, c1 * c0, n1 * n0)
    made = np.empty((1, h, w, c, n), array.dtype)
    for group in range(groups):
        block, place = divmod(group, shared)
        part = blocks[block, :, :, place * c : (place + 1) * c, place * each : (place + 1) * each]
        made[0, ..., group * each : (group + 1) * each] = part
    return "DHWCN", made


def _from_nz(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    target = (1,) * (2 - len(shape)) + shape
    if array.ndim < 4 or array.ndim != len(target) + 2 or array.shape[:-4] != target[:-2]:
        return _misfit(array, "FRACTAL_NZ", shape)
    columns, rows, row, column = array.shape[-4:]
    lead = array.ndim - 4
    whole = array.transpose(*range(lead), lead + 1, lead + 2, lead, lead + 3)
    whole = whole.reshape(*array.shape[:-4], rows * row, columns * column)
    if not (0 <= rows * row - target[-2] < row and 0 <= columns * column - target[-1] < column):
        return _misfit(array, "FRACTAL_NZ", shape)
    return whole[..., : target[-2], : target[-1]].reshape(shape)


def _from_plain(array: np.ndarray, layout: str, shape: tuple[int, ...], original: str) -> np.ndarray:
    if layout in PLAIN and array.ndim == len(layout) == len(shape):
        for letters in _candidates(shape, original):
            order = [layout.index(letter) for letter in letters] if sorted(letters) == sorted(layout) else []
            if order and tuple(array.shape[k] for k in order) == shape:
                return array.transpose(order)
    without_ones = [size for size in array.shape if size != 1]
    if array.size == _product(shape) and without_ones == [size for size in shape if size != 1]:
        return array.reshape(shape)
    return _misfit(array, layout, shape)


def _misfit(array: np.ndarray, layout: str, shape: tuple[int, ...]) -> np.ndarray:
    known = layout in PLAIN or layout in _DIMENSIONS or layout in ("FRACTAL_NZ", "ND")
    found = f"shape {list(array.shape)} in {layout} does not fit {list(shape)} of the graph"
    raise DumpError(found if known else f"layout {layout} is unknown, and {found}")


def _product(sizes: Sequence[int]) -> int:
    return functools.reduce(operator.mul, sizes, 1)


def _lcm(one: int, other: int) -> int:
    return one * other // math.gcd(one, other)
