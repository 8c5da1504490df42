"""A dump file: eight bytes with the length of the message, the message, then the tensors' bytes, inputs before outputs.

The message is ``DumpData`` of the engine's ``dump_task.proto``. Its wire format is read here, so no release of protobuf
is needed, and tensors inside the message stay in the file, too, until ``values`` maps them into memory. A field that is
not in the tables below is skipped.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from typing import Dict, Iterable, List, Mapping, Sequence, Tuple

import numpy as np

from npu_shim._tensorflow.types import Value
from npu_shim.dumps import formats, small_types
from npu_shim.dumps.files import DumpFile, Problems, collect_problem
from npu_shim.dumps.formats import DumpError
from npu_shim.dumps.graph_files import GraphOp

_VARINT, _BYTES, _FIXED = 0, 2, {1: 8, 5: 4}  # wire types, and bytes of those of fixed size
_MOST_MESSAGE = 1 << 31  # protobuf's own limit
_MOST_DIMENSIONS = 32
_ND = 2  # the number of the format without a layout
_LENGTH = re.compile(rb"\[([0-9]{1,9})\]")  # in front of a name
Span = Tuple[int, int]  # begin and end of bytes
# The engine's types in the order of their numbers.
_NAMES = """
undefined float32 float16 int8 uint8 int16 uint16 int32 int64 uint32 uint64 bool float64 string dual_sub_int8
dual_sub_uint8 complex64 complex128 qint8 qint16 qint32 quint8 quint16 resource string_ref dual variant bfloat16 int4
uint1 int2 uint2 complex32 hifloat8 float8_e5m2 float8_e4m3fn float8_e8m0 float6_e3m2 float6_e2m3 float4_e2m1
float4_e1m2 hifloat4
""".split()
_READ = {name: name.lstrip("q") for name in _NAMES[1:13] + _NAMES[16:23]}  # as NumPy calls them
_READ.update(small_types.STORED)


@dataclass
class Tensor:
    """A tensor of an operator.

    Attributes:
        path: of the file.
        data_type, format: the numbers of the message.
        shape: as it lies in memory.
        original_shape: in the graph; equal to ``shape`` where the message has none.
        groups: of a convolution whose weights these are; 0 or 1 without groups.
        size: of its data in bytes.
        data: where it is in the file.
        original: name of the original op, empty if unknown.
        original_output: its output; -1 if unknown.
        original_type, original_format: in the graph. The engine fills both, so a format without a type is none.
        parts: the slices that it is made of; empty for a whole tensor.
    """

    path: str = ""
    data_type: int = 0
    format: int = 0
    shape: tuple[int, ...] = ()
    original_shape: tuple[int, ...] = ()
    groups: int = 0
    size: int = 0
    data: Span = (0, 0)
    original: str = ""
    original_output: int = 0
    original_type: int = 0
    original_format: int = 0
    parts: list[Tensor] = field(default_factory=list)


@dataclass
class DumpData:
    """An operator and its tensors, as the message of a dump file has them.

    Attributes:
        op_name: in the message, else in the name of the file.
        file: that it is from.
        op: in the graph of the engine; None if there is no graph, or it lacks the operator.
    """

    op_name: str = ""
    outputs: list[Tensor] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    file: DumpFile = DumpFile()
    op: GraphOp | None = None

    @property
    def name(self) -> str:
        """The name in the graph, else that of the dump."""
        return self.op.name if self.op else self.op_name

    @property
    def type(self) -> str:
        """The type in the graph, else that in the name of the file."""
        return self.op.op_type if self.op else self.file.op_type

    @property
    def originals(self) -> list[str] | None:
        """The ops that the engine made this one from; None if unknown, empty for one that the engine added."""
        if self.op and self.op.originals is not None:
            return self.op.originals
        text, names = self.attributes.get("_datadump_original_op_names", "").encode(), []
        head = _LENGTH.match(text)  # [LENGTH]NAME[LENGTH]NAME
        while head:
            end = head.end() + int(head[1])
            names.append(text[head.end() : end].decode("utf-8", "replace"))
            head = _LENGTH.match(text, end)
        return names or None


# Message -> its fields by number: the name and int, str, Span, or the table of a message. The fields of a message
# without a name are those of the one that has it.
Table = Mapping[int, Tuple[str, Value]]
Fields = Dict[str, List[Value]]
_ORIGINAL = dict(enumerate([("original", str), ("original_output", int), ("original_type", int)], 1))
_ORIGINAL[4] = ("original_format", int)
_INPUT = {1: ("data_type", int), 2: ("format", int), 3: ("", {1: ("shape", int)}), 4: ("data", Span), 5: ("size", int)}
_INPUT.update({6: ("", {1: ("original_shape", int)}), 7: ("groups", int)})
_OUTPUT = {4: ("", _ORIGINAL), **{number + (number > 3): row for number, row in _INPUT.items()}}
_ATTRIBUTE = {1: ("name", str), 2: ("value", str)}
_DUMP = {3: ("outputs", _OUTPUT), 4: ("inputs", _INPUT), 6: ("op_name", str), 7: ("attributes", _ATTRIBUTE)}


def parse_message(raw: memoryview, begin: int, end: int) -> DumpData:
    """Read a message.

    Args:
        raw: the file.
        begin, end: where the message is.
    Raises:
        DumpError: the bytes are no such message.
    """
    fields = _decode_fields(raw, begin, end, _DUMP, {})
    outputs, inputs = (list(map(_tensor_from_fields, fields.get(side, []))) for side in ("outputs", "inputs"))
    pairs = [
        [attribute.get(part, [""])[-1] for part in ("name", "value")] for attribute in fields.get("attributes", [])
    ]
    return DumpData(fields.get("op_name", [""])[-1], outputs, inputs, dict(pairs))


def _decode_fields(raw: memoryview, place: int, end: int, table: Table, fields: Fields) -> Fields:
    """Add the values of each known field to others, and return all."""
    while place < end:
        key, place = _decode_varint_and_end(raw, place, end)
        (name, kind), wire = table.get(key >> 3, ("", None)), key & 7
        number, begin = (
            _decode_varint_and_end(raw, place, end) if wire in (_VARINT, _BYTES) else (_FIXED.get(wire, -1), place)
        )
        place = begin if wire == _VARINT else begin + number
        if number < 0:
            raise DumpError(f"field {key >> 3} of its message has the unknown wire type {wire}")
        if place > end:
            raise DumpError(f"field {key >> 3} of its message has {number} bytes where {end - begin} are left")
        if wire == _VARINT and kind not in (int, None):
            raise DumpError("its message has a number in the place of a text or message")
        values = fields.setdefault(name, []) if name else []
        if wire == _VARINT:
            values.append(number)
        elif kind is int:  # numbers in a row
            while begin < place:
                number, begin = _decode_varint_and_end(raw, begin, place)
                values.append(number)
        elif kind is str:
            values.append(bytes(raw[begin:place]).decode("utf-8", "replace"))
        elif kind is Span:
            values.append((begin, place))
        elif kind:
            values.append(_decode_fields(raw, begin, place, kind, {} if name else fields))
    return {name: values for name, values in fields.items() if values}


def _decode_varint_and_end(raw: memoryview, place: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while place < end and shift < 70:
        byte = raw[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value & (1 << 64) - 1, place
    raise DumpError("a number of its message is cut off")


def _tensor_from_fields(fields: Fields) -> Tensor:
    given: dict[str, Value] = {
        name: tuple(numbers) if "shape" in name else numbers[-1] for name, numbers in fields.items()
    }
    tensor = Tensor(**given)
    for sizes in (tensor.shape, tensor.original_shape):
        if len(sizes) > _MOST_DIMENSIONS or any(size >= 1 << 63 for size in sizes):
            raise DumpError(f"shape of {len(sizes)} dimensions, {list(sizes[:4])} ..., is not that of a tensor")
    tensor.original_shape = tensor.original_shape or tensor.shape
    if tensor.original_output >= 1 << 31:  # -1 in 32 bits
        tensor.original_output = -1
    return tensor


def read_dump(path: str) -> DumpData:
    """Read the message of a dump file, and find the data of its tensors.

    Raises:
        DumpError: the file is no dump, or is cut off.
    """
    size = os.path.getsize(path)
    raw = memoryview(np.memmap(path, np.uint8, "r") if size else b"")  # type: ignore[arg-type]
    length = int.from_bytes(raw[:8], "little")
    if length > min(size - 8, _MOST_MESSAGE):
        raise DumpError(f"its message would have {length} bytes, the file has {size}. It is cut off, or no dump")
    data = parse_message(raw, 8, 8 + length)
    place = 8 + length
    for tensor in data.inputs + data.outputs:
        tensor.path = path
        if tensor.data[1] > tensor.data[0]:  # inside the message
            tensor.size = tensor.data[1] - tensor.data[0]
            continue
        tensor.data = (place, place + tensor.size)
        place += tensor.size
    if place > size:
        raise DumpError(f"its tensors have {place - 8 - length} bytes, {size - 8 - length} are there. It is cut off")
    return data


def read_dumps(files: Iterable[DumpFile], problems: Problems) -> list[DumpData]:
    """Read dump files; a message without a name has that of its file, what is wrong is added to ``problems``."""
    operators = []
    for file in files:
        with collect_problem(problems, file.path):
            data = read_dump(file.path)
            operators.append(replace(data, file=file, op_name=data.op_name or file.op_name))
    return operators


def tensor_of_npy(path: str, op: str, output: int) -> Tensor:
    """Return the tensor in a file of NumPy as one of a device: an output of this op.

    Raises:
        ValueError: the file is no array of a type that is compared.
    """
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.memmap) or array.dtype.name not in _NAMES:
        raise ValueError(f"its type is {array.dtype}")
    span, shape = (array.offset, array.offset + array.nbytes), array.shape
    number = _NAMES.index(array.dtype.name)
    return Tensor(path, number, _ND, shape, shape, 0, array.nbytes, span, op, output)


def type_name(tensor: Tensor) -> str:
    """Return the name of a tensor's type."""
    return _NAMES[tensor.data_type] if tensor.data_type < len(_NAMES) else f"type {tensor.data_type}"


def elements_in_memory(tensor: Tensor) -> np.ndarray:
    """Return the elements of a tensor as they lie in memory, mapped; those of types that NumPy lacks as float32.

    Raises:
        DumpError: the type has no form in NumPy, or the shape has more elements than the data.
    """
    name = type_name(tensor)
    if name not in _READ:
        raise DumpError(f"type {name} cannot be compared: it has no known form in NumPy")
    dtype, number = np.dtype(_READ[name]), formats.product(tensor.shape)
    stored = -(-number // 2) if name == "int4" else number
    needed = stored * dtype.itemsize
    if needed > tensor.size:  # more bytes than elements are padding
        raise DumpError(f"shape {list(tensor.shape)} of {name} needs {needed} bytes, {tensor.size} are there")
    array: np.ndarray = np.memmap(tensor.path, dtype, "r", tensor.data[0], (stored,)) if number else np.zeros(0, dtype)
    return small_types.decode_numbers(name, np.asarray(array))[:number].reshape(tensor.shape)


def tensor_in_graph_shape(tensor: Tensor, layout: str = "", shape: Sequence[int] = ()) -> np.ndarray:
    """Return a tensor in the shape that it has in the graph.

    Args:
        tensor: of a file, or of slices.
        layout: in the graph, if known; else that of the original op in the message counts.
        shape: that slices make.
    Raises:
        ValueError: its type or layout is unknown, or does not fit.
    """
    if tensor.parts:
        slices = [tensor_in_graph_shape(part, layout) for part in tensor.parts]
        wholes = (np.concatenate(slices, axis) for axis in range(slices[0].ndim))
        whole = next((whole for whole in wholes if whole.shape == tuple(shape)), None)
        if whole is None:
            raise DumpError(f"{len(slices)} slices do not make shape {list(shape)}")
        return whole
    layout = layout or (formats.format_name(tensor.original_format) if tensor.original_type else "")
    return formats.to_graph_shape(
        elements_in_memory(tensor), formats.format_name(tensor.format), tensor.original_shape, layout, tensor.groups
    )
