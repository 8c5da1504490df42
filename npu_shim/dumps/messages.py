"""DumpData, the message at the head of a dump file, read from the wire format of protobuf.

The engine defines it in ``dump_task.proto``. Reading the bytes here needs no release of protobuf, and leaves tensors
that lie inside the message in the file. A field that is not in the tables below is skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterator, Sequence, Tuple, Union

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_DIMENSIONS = 32
Span = Tuple[int, int]  # begin and end of bytes
Value = Union[int, Span]


class DumpError(ValueError):
    """A file that cannot be read as a dump."""


@dataclass
class Tensor:
    """A tensor of an operator.

    Attributes:
        data_type, format: the numbers of the message.
        shape: as it lies in memory.
        original_shape: in the graph; equal to ``shape`` where the message has none.
        groups: of a convolution whose weights these are; 0 or 1 without groups.
        size: of its data in bytes.
        data: where it is in the file.
        original: name of the original op, empty if unknown.
        original_output: its output; -1 if unknown.
        original_type, original_format: in the graph. The engine fills both, so a format without a type is none.
        parts: the files and tensors that it is made of, along ``axis``; empty for a tensor of one file.
    """

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
    parts: list[tuple[str, Tensor]] = field(default_factory=list)
    axis: int = 0


@dataclass
class DumpData:
    """The message of a dump file: an operator and its tensors."""

    op_name: str = ""
    outputs: list[Tensor] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def originals(self) -> list[str]:
        """The names of the ops that the engine made this one from, written as [LENGTH]NAME[LENGTH]NAME."""
        text, names = self.attributes.get("_datadump_original_op_names", "").encode(), []
        while text[:1] == b"[":
            length, _, text = text[1:].partition(b"]")
            if not length.isdigit():
                break
            names.append(text[: int(length)].decode("utf-8", "replace"))
            text = text[int(length) :]
        return names


# Fields of OpOutput and OpInput by number: the attribute, and True for a shape.
_OUTPUT = {
    1: "data_type",
    2: "format",
    3: "shape",
    4: "original_op",
    5: "data",
    6: "size",
    7: "original_shape",
    8: "groups",
}
_INPUT = {1: "data_type", 2: "format", 3: "shape", 4: "data", 5: "size", 6: "original_shape", 7: "groups"}
_ORIGINAL = {1: "original", 2: "original_output", 3: "original_type", 4: "original_format"}


def parse(raw: memoryview, begin: int, end: int) -> DumpData:
    """Read a message.

    Args:
        raw: the file.
        begin, end: where the message is.
    Raises:
        DumpError: the bytes are no such message.
    """
    found = DumpData()
    for number, value in _fields(raw, begin, end):
        if number == 3:
            found.outputs.append(_tensor(raw, _span(value), _OUTPUT))
        elif number == 4:
            found.inputs.append(_tensor(raw, _span(value), _INPUT))
        elif number == 6:
            found.op_name = _text(raw, value)
        elif number == 7:
            parts = dict(_fields(raw, *_span(value)))
            found.attributes[_text(raw, parts.get(1, (0, 0)))] = _text(raw, parts.get(2, (0, 0)))
    return found


def _tensor(raw: memoryview, span: Span, names: dict[int, str]) -> Tensor:
    made = Tensor()
    for number, value in _fields(raw, *span):
        name = names.get(number)
        if name in ("shape", "original_shape"):
            setattr(made, name, _shape(raw, _span(value)))
        elif name == "original_op":
            for part, inner in _fields(raw, *_span(value)):
                if part in _ORIGINAL:
                    setattr(made, _ORIGINAL[part], _text(raw, inner) if part == 1 else _number(inner))
        elif name == "data":
            made.data = _span(value)
        elif name:
            setattr(made, name, _number(value))
    made.original_shape = made.original_shape or made.shape
    if made.original_output >= 1 << 31:  # -1 in 32 bits
        made.original_output = -1
    return made


def _shape(raw: memoryview, span: Span) -> tuple[int, ...]:
    sizes: list[int] = []
    for number, value in _fields(raw, *span):
        if number != 1:
            continue
        if isinstance(value, int):
            sizes.append(value)
            continue
        place, end = value
        while place < end:
            size, place = _varint(raw, place, end)
            sizes.append(size)
    if len(sizes) > _MOST_DIMENSIONS or any(size >= 1 << 63 for size in sizes):
        raise DumpError(f"shape of {len(sizes)} dimensions, {_short(sizes)}, is not that of a tensor")
    return tuple(sizes)


def _fields(raw: memoryview, place: int, end: int) -> Iterator[tuple[int, Value]]:
    while place < end:
        key, place = _varint(raw, place, end)
        kind, value = key & 7, 0
        if kind == _VARINT:
            value, place = _varint(raw, place, end)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, place = _varint(raw, place, end)
        elif kind in (_FIXED32, _FIXED64):
            length = 4 if kind == _FIXED32 else 8
        else:
            raise DumpError(f"field {key >> 3} of its message has the unknown wire type {kind}")
        if length > end - place:
            raise DumpError(f"field {key >> 3} of its message has {length} bytes where {end - place} are left")
        yield key >> 3, (place, place + length)
        place += length


def _varint(raw: memoryview, place: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while place < end and shift < 70:
        byte = raw[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value & (1 << 64) - 1, place
    raise DumpError("a number of its message is cut off")


def _span(value: Value) -> Span:
    if isinstance(value, int):
        raise DumpError("its message has a number in the place of a text or message")
    return value


def _number(value: Value) -> int:
    if not isinstance(value, int):
        raise DumpError("its message has a text in the place of a number")
    return value


def _text(raw: memoryview, value: Value) -> str:
    begin, end = _span(value)
    return bytes(raw[begin:end]).decode("utf-8", "replace")


def _short(sizes: Sequence[int]) -> str:
    return str(list(sizes[:4])) if len(sizes) < 5 else f"{list(sizes[:4])} ..."
