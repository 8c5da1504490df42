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
import operator
from typing import Iterable, Sequence

import numpy as np

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
# The axes in memory: of a letter with blocks, 1 counts them and 0 is inside one.
_AXES = {"NC1HWC0": "N C1 H W C0", "NDC1HWC0": "N D C1 H W C0", "FRACTAL_Z": "C1 H W N1 N0 C0"}
_AXES.update({"NC1HWC0_C04": _AXES["NC1HWC0"], "FRACTAL_Z_3D": "D C1 H W N1 N0 C0", "FRACTAL_NZ": "S1 R1 R0 S0"})
_N0 = 16


class DumpError(ValueError):
    """A file that cannot be read as a dump."""


def format_name(number: int) -> str:
    """Return the name of a format."""
    return _NAMES[number] if number < len(_NAMES) else f"format {number}"


def to_graph_shape(
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
    for letters in _axis_letter_candidates(array, layout, shape, original):
        try:
            return _to_axes(array, layout, letters, shape, groups)
        except ValueError:  # its sizes do not fit
            continue
    is_blocked = layout in _AXES
    same = not is_blocked and [size for size in array.shape if size != 1] == [size for size in shape if size != 1]
    if array.size == product(shape) and (same or not array.size):
        return array.reshape(shape)
    problem = f"shape {list(array.shape)} in {layout} does not fit {list(shape)} of the graph"
    is_known = is_blocked or layout in PLAIN or layout == "ND"
    raise DumpError(problem if is_known else f"layout {layout} is unknown, and {problem}")


def product(sizes: Iterable[int]) -> int:
    """Return the product of sizes, exactly."""
    return functools.reduce(operator.mul, sizes, 1)


def _axis_letter_candidates(array: np.ndarray, layout: str, shape: tuple[int, ...], original: str) -> list[str]:
    """Return the letters that the axes of a shape may have, the likeliest first; nothing where they do not count."""
    if layout == "FRACTAL_NZ":
        letters = _leading_axis_letters(array) + "RS"
        return [letters[max(0, len(letters) - len(shape)) :]]
    if layout not in _AXES and (layout not in PLAIN or (array.shape == shape and original not in PLAIN)):
        return []
    likely = [original] if original in PLAIN else []
    likely += [*(_OF_WEIGHTS if layout.startswith("FRACTAL_Z") else PLAIN), "C"]
    return [letters for letters in likely if len(letters) == len(shape)]


def _leading_axis_letters(array: np.ndarray) -> str:
    return "".join(map(chr, range(array.ndim - 4)))


def _to_axes(array: np.ndarray, layout: str, letters: str, shape: tuple[int, ...], groups: int) -> np.ndarray:
    """Return a tensor whose axes in the graph have these letters.

    Raises:
        ValueError: the sizes do not fit.
    """
    sizes, axes = dict(zip(letters, shape)), _AXES.get(layout, " ".join(layout)).split()
    if layout == "FRACTAL_NZ":
        axes = [*_leading_axis_letters(array), *axes]
    elif layout.startswith("FRACTAL_Z") and groups > 1:
        array, axes = _grouped_weights(array, sizes, groups), list("HWCN")
    elif layout.startswith("FRACTAL_Z"):
        *depth, height, width = (sizes.get(axis, 1) for axis in "DHW"[layout == "FRACTAL_Z" :])
        array = array.reshape([*depth, -1, height, width, *array.shape[1:]])
    if array.ndim != len(axes) or len(letters) != len(shape):
        raise ValueError("another number of axes")
    # The blocks of an axis are put together, and what fills the last one is left out.
    wanted = [*letters, *sorted({axis[0] for axis in axes} - set(letters))]
    places = [[place for place, axis in enumerate(axes) if axis[0] == letter] for letter in wanted]
    wholes = [product(array.shape[place] for place in of_letter) for of_letter in places]
    for whole, letter, of_letter in zip(wholes, wanted, places):
        if not 0 <= whole - sizes.get(letter, 1) < (array.shape[of_letter[-1]] if len(of_letter) > 1 else 1):
            raise ValueError("another size")
    tensor = array.transpose([place for of_letter in places for place in of_letter]).reshape(wholes)
    return tensor[tuple(slice(sizes.get(letter, 1)) for letter in wanted)].reshape(shape)


def _grouped_weights(array: np.ndarray, sizes: dict[str, int], groups: int) -> np.ndarray:
    """Return weights as HWCN."""
    n, c, d, h, w = (sizes.get(letter, 1) for letter in "NCDHW")
    rows, n1, n0, c0 = array.shape
    rows_of_group = n // groups
    if d != 1 or not array.size or not rows_of_group * c or n % groups:
        raise ValueError("another size")
    shared = min(int(np.lcm(np.lcm(c, c0) // c, np.lcm(rows_of_group, _N0) // rows_of_group)), groups)
    c1, g = -(-shared * c // c0), -(-groups // shared)
    blocks = array.reshape(g, c1, h, w, n1 * n0, c0).transpose(0, 2, 3, 1, 5, 4).reshape(g, h, w, c1 * c0, n1 * n0)
    parts = (blocks[k // shared, :, :, k % shared * c :, k % shared * rows_of_group :] for k in range(groups))
    return np.concatenate([part[:, :, :c, :rows_of_group] for part in parts], 3)
