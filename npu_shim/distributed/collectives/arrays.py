"""Tensors of a collective: checked, flattened, and described in text that ranks can compare."""

from __future__ import annotations

import functools
from typing import List, Sequence, TypeVar, Union, cast

import numpy as np

from npu_shim.distributed.collectives.reductions import BFLOAT16

Tensors = Union[np.ndarray, Sequence[np.ndarray]]
OneOrList = TypeVar("OneOrList", np.ndarray, List[np.ndarray])
_BITS16 = np.dtype(np.uint16)


class Array:
    """A tensor of a collective.

    ``flat`` has its elements in one dimension, bfloat16 as bits. ``type_name`` is their type.

    Args:
        value: anything that NumPy converts to an array.
        type_name: 'bfloat16' if value has the bits of bfloat16 numbers; by default the type of value.
    Raises:
        TypeError: value is not numeric.
    """

    def __init__(self, value: np.ndarray, type_name: str | None = None) -> None:
        array = np.asarray(value)
        self.shape: tuple[int, ...] = array.shape
        self.dtype = array.dtype
        name = _numeric_name(array.dtype)
        self.type_name = type_name or name
        if type_name is not None and (type_name != BFLOAT16 or array.dtype.itemsize != 2):
            raise TypeError(
                f"type_name={type_name!r} is not allowed for an array of {array.dtype}. Use 'bfloat16' with an array "
                "of uint16."
            )
        flat = (array if array.flags.c_contiguous else np.ascontiguousarray(array)).reshape(-1)
        self.flat = flat.view(_BITS16) if self.type_name == BFLOAT16 else flat

    def restore(self, flat: np.ndarray, shape: Sequence[int] | None = None) -> np.ndarray:
        """Return a flat result with the type of this tensor, and with its shape unless another one is given."""
        typed = flat if flat.dtype is self.dtype else flat.view(self.dtype)
        return typed.reshape(self.shape if shape is None else shape)

    @property
    def rows(self) -> int:
        """Return the size of axis 0; 1 for a scalar."""
        return self.shape[0] if self.shape else 1

    @property
    def row_size(self) -> int:
        """Return the number of elements of one row of axis 0; 1 for a scalar."""
        return int(np.prod(self.shape[1:], dtype=np.int64))

    @property
    def row_text(self) -> str:
        """Return type and shape without the size of axis 0, which may differ between ranks."""
        return f"{self.type_name}[{', '.join(map(str, ('?',) + self.shape[1:]))}]"

    def __str__(self) -> str:
        return f"{self.type_name}{list(self.shape)}"


@functools.lru_cache(maxsize=None)
def _numeric_name(dtype: np.dtype) -> str:
    if dtype.hasobject or dtype.kind in "USMm":
        raise TypeError(f"a tensor of type {dtype} cannot be sent to other ranks. Send numbers only.")
    return dtype.name


def types_and_shapes_text(arrays: Sequence[Array]) -> str:
    """Return types and shapes of tensors, their number first, as long texts are cut."""
    texts = [str(array) for array in arrays]
    return texts[0] if len(texts) == 1 else f"{len(texts)} tensors, " + ", ".join(texts)


def to_arrays(tensors: Tensors, type_name: str | None = None) -> list[Array]:
    """Return one tensor, or several, as a list."""
    listed = tensors if isinstance(tensors, (list, tuple)) else [np.asarray(tensors)]
    return [Array(tensor, type_name) for tensor in listed]


def common_dtype(arrays: list[Array]) -> np.dtype:
    """Return the in-memory type of tensors that are sent together; any type for an empty list."""
    return arrays[0].flat.dtype if arrays else np.dtype(np.float32)


def common_type_name(arrays: list[Array]) -> str:
    """Return the type name of tensors that are sent together; any type for an empty list."""
    return arrays[0].type_name if arrays else "float32"


def restore_structure(tensors: OneOrList, results: list[np.ndarray]) -> OneOrList:
    """Return the results as the tensors were passed: one array, or a list."""
    return cast(OneOrList, results if isinstance(tensors, (list, tuple)) else results[0])
