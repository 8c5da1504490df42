"""A dump file: eight bytes with the length of the message, the message, then the tensors' bytes, inputs before outputs.

Only the message is read; tensors stay in the file until ``values`` maps them into memory.
"""

from __future__ import annotations

import functools
import operator
import os
from typing import Iterable

import numpy as np

from npu_shim.dumps import formats
from npu_shim.dumps.files import DumpFile
from npu_shim.dumps.messages import DumpData, DumpError, Tensor, parse

_MOST_MESSAGE = 1 << 31  # protobuf's own limit
# The engine's types in the order of their numbers.
_NAMES = """
undefined float32 float16 int8 uint8 int16 uint16 int32 int64 uint32 uint64 bool float64 string dual_sub_int8
dual_sub_uint8 complex64 complex128 qint8 qint16 qint32 quint8 quint16 resource string_ref dual variant bfloat16 int4
uint1 int2 uint2 complex32 hifloat8 float8_e5m2 float8_e4m3fn float8_e8m0 float6_e3m2 float6_e2m3 float4_e2m1
float4_e1m2 hifloat4
""".split()
_READ = {name: name.lstrip("q") for name in _NAMES[1:13] + _NAMES[16:23]}  # as NumPy calls them
_READ["bfloat16"] = "uint16"


def read(path: str) -> DumpData:
    """Read the message of a dump file, and find the data of its tensors.

    Raises:
        DumpError: the file is no dump, or is cut off.
    """
    size = os.path.getsize(path)
    if size < 8:
        raise DumpError(f"it has {size} bytes, fewer than the length of a message takes. Copy the file again")
    raw = memoryview(np.memmap(path, np.uint8, "r"))  # type: ignore[arg-type]
    length = int.from_bytes(raw[:8], "little")
    if length > min(size - 8, _MOST_MESSAGE):
        raise DumpError(f"its message would have {length} bytes, the file has {size}. It is cut off, or no dump")
    found = parse(raw, 8, 8 + length)
    place = 8 + length
    for tensor in found.inputs + found.outputs:
        if tensor.data[1] > tensor.data[0]:  # inside the message
            tensor.size = tensor.data[1] - tensor.data[0]
            continue
        tensor.data = (place, place + tensor.size)
        place += tensor.size
    if place > size:
        raise DumpError(f"its tensors have {place - 8 - length} bytes, {size - 8 - length} are there. It is cut off")
    return found


def read_all(found: Iterable[DumpFile], problems: dict[str, str]) -> list[tuple[DumpFile, DumpData]]:
    """Read the messages of dump files; what is wrong with one is added to ``problems``."""
    made = []
    for file in found:
        try:
            made.append((file, read(file.path)))
        except (DumpError, OSError) as error:
            problems[file.path] = str(error)
    return made


def type_name(tensor: Tensor) -> str:
    """Return the name of a tensor's type."""
    return _NAMES[tensor.data_type] if tensor.data_type < len(_NAMES) else f"type {tensor.data_type}"


def values(path: str, tensor: Tensor) -> np.ndarray:
    """Return the elements of a tensor as they lie in memory, mapped; those of bfloat16 as float32.

    Raises:
        DumpError: the type has no form in NumPy, or the shape has more elements than the data.
    """
    if tensor.parts:
        return np.concatenate([values(*part) for part in tensor.parts], tensor.axis)
    name = type_name(tensor)
    if name not in _READ:
        raise DumpError(f"type {name} cannot be compared: NumPy has no such type")
    dtype = np.dtype(_READ[name])
    number = functools.reduce(operator.mul, tensor.shape, 1)
    if number * dtype.itemsize > tensor.size:  # more bytes than elements are padding
        raise DumpError(
            f"shape {list(tensor.shape)} of {name} needs {number * dtype.itemsize} bytes, {tensor.size} are there"
        )
    if not number:
        return np.zeros(tensor.shape, np.float32 if name == "bfloat16" else dtype)
    found = np.memmap(path, dtype, "r", tensor.data[0], (number,))
    array = np.asarray(found).reshape(tensor.shape)
    return (array.astype(np.uint32) << 16).view(np.float32) if name == "bfloat16" else array


def original(path: str, tensor: Tensor, layout: str = "") -> np.ndarray:
    """Return a tensor in the shape that it has in the graph.

    Args:
        path: of the file.
        tensor: of it.
        layout: in the graph, if known; else that of the original op in the message counts.
    Raises:
        DumpError: its type or layout is unknown, or does not fit.
    """
    named = formats.name(tensor.original_format) if tensor.original_type else ""
    array, name = values(path, tensor), formats.name(tensor.format)
    return formats.to_original(array, name, tensor.original_shape, layout or named, tensor.groups)
