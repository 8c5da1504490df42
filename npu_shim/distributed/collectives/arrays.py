"""What is handed to a collective: checked, flat, and said in words that ranks can compare."""

from __future__ import annotations

import functools
from typing import Any, Sequence, Union

import numpy as np

from npu_shim.distributed.collectives.buffer_pool import Memory
from npu_shim.distributed.collectives.reductions import BFLOAT16

Tensors = Union[np.ndarray, Sequence[np.ndarray]]
_BITS16 = np.dtype(np.uint16)


class Array:
    """A tensor of a collective.

    ``flat`` holds its numbers in a row, those of bfloat16 as their bits, and ``type_name`` says what they are.

    Args:
        value: anything NumPy makes an array of.
        type_name: 'bfloat16' when value holds the bits of such numbers; else the type is that of value.
    Raises:
        TypeError: value has no numbers.
    """

    def __init__(self, value: Any, type_name: str | None = None) -> None:
        array = np.asarray(value)
        self.shape: tuple[int, ...] = array.shape
        self.dtype = array.dtype
        name = _name_of(array.dtype)
        self.type_name = type_name or name
        if type_name is not None and (type_name != BFLOAT16 or array.dtype.itemsize != 2):
            raise TypeError(
                f"type_name={type_name!r} is not allowed for an array of {array.dtype}: it may be "
                "'bfloat16' for an array of uint16."
            )
        flat = (array if array.flags.c_contiguous else np.ascontiguousarray(array)).reshape(-1)
        self.flat = flat.view(_BITS16) if self.type_name == BFLOAT16 else flat

    def shaped(self, flat: np.ndarray, shape: Sequence[int] | None = None) -> np.ndarray:
        """A flat result as an array of this tensor's type, and of its shape unless another is given."""
        typed = flat if flat.dtype is self.dtype else flat.view(self.dtype)
        return typed.reshape(self.shape if shape is None else shape)

    def __str__(self) -> str:
        return f"{self.type_name}{list(self.shape)}"


@functools.lru_cache(maxsize=None)
def _name_of(dtype: np.dtype) -> str:
    if dtype.hasobject or dtype.kind in "USMm":
        raise TypeError(f"a tensor of type {dtype} cannot go to other ranks: only numbers can.")
    return dtype.name


def said(arrays: Sequence[Array]) -> str:
    """The types and shapes of tensors, the number of them first, as a message may have no room for all."""
    texts = [str(array) for array in arrays]
    return texts[0] if len(texts) == 1 else f"{len(texts)} tensors, " + ", ".join(texts)


def arrays_of(tensors: Tensors, type_name: str | None = None) -> list[Array]:
    """One tensor, or several, as a list."""
    return [Array(tensor, type_name) for tensor in (tensors if isinstance(tensors, (list, tuple)) else [tensors])]


def results_for(arrays: list[Array], memory: Memory, out: Tensors | None = None) -> list[np.ndarray]:
    """Flat arrays for results: new ones, or those that the caller gave.

    Raises:
        ValueError: these do not fit.
    """
    if out is None:
        return memory.arrays([(array.flat.size, array.flat.dtype) for array in arrays])
    given: list[Any] = list(out) if isinstance(out, (list, tuple)) else [out]
    if len(given) != len(arrays) or any(
        g.shape != a.shape or g.dtype != a.dtype or not g.flags.c_contiguous or np.may_share_memory(g, a.flat)
        for g, a in zip(given, arrays)
    ):
        raise ValueError(
            "out does not fit: it must be contiguous arrays of the tensors' shapes and types that do not overlap them."
        )
    return [g.reshape(-1).view(a.flat.dtype) for g, a in zip(given, arrays)]


def dtype_of(arrays: list[Array]) -> np.dtype:
    """The type in which tensors that travel together are in memory; of none, any."""
    return arrays[0].flat.dtype if arrays else np.dtype(np.float32)


def type_of(arrays: list[Array]) -> str:
    """The name of their type."""
    return arrays[0].type_name if arrays else "float32"


def like(tensors: Tensors, results: list[np.ndarray]) -> Any:
    """Results as the tensors were given: one, or a list."""
    return results if isinstance(tensors, (list, tuple)) else results[0]
