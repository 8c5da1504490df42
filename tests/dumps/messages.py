"""The published messages of dump files as classes of protobuf, and the layouts of the device, written element by element."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# Message -> its fields: number, name, type; * for repeated ones. Enumerations are int32, which has the same bytes.
_MESSAGES = {
    "OriginalOp": ["1 name string", "2 output_index uint32", "3 data_type int32", "4 format int32"],
    "Shape": ["1 dim uint64*"],
    "DimRange": ["1 dim_start uint64", "2 dim_end uint64"],
    "OpOutput": [
        "1 data_type int32",
        "2 format int32",
        "3 shape Shape",
        "4 original_op OriginalOp",
        "5 data bytes",
        "6 size uint64",
        "7 original_shape Shape",
        "8 sub_format int32",
        "9 address uint64",
        "10 dim_range DimRange*",
        "11 arg_index uint32",
    ],
    "OpInput": [
        "1 data_type int32",
        "2 format int32",
        "3 shape Shape",
        "4 data bytes",
        "5 size uint64",
        "6 original_shape Shape",
        "7 sub_format int32",
        "8 address uint64",
        "9 offset uint64",
        "10 arg_index uint32",
        "11 input_type uint32",
    ],
    "OpBuffer": ["1 buffer_type int32", "2 data bytes", "3 size uint64"],
    "OpAttr": ["1 name string", "2 value string"],
    "Workspace": ["1 type int32", "2 data bytes", "3 size uint64", "4 arg_index uint32"],
    "DumpData": [
        "1 version string",
        "2 dump_time uint64",
        "3 output OpOutput*",
        "4 input OpInput*",
        "5 buffer OpBuffer*",
        "6 op_name string",
        "7 attr OpAttr*",
        "8 space Workspace*",
        "9 dfx_message string",
    ],
}
TYPES = {
    "float32": 1,
    "float16": 2,
    "int8": 3,
    "uint8": 4,
    "int16": 5,
    "int32": 7,
    "int64": 8,
    "bool": 11,
    "float64": 12,
}
TYPES["bfloat16"] = 27
FORMATS = {"NCHW": 0, "NHWC": 1, "ND": 2, "NC1HWC0": 3, "FRACTAL_Z": 4, "HWCN": 16, "NDHWC": 27, "FRACTAL_NZ": 29}
FORMATS.update({"NCDHW": 30, "DHWCN": 31, "NDC1HWC0": 32, "FRACTAL_Z_3D": 33})


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="dump_task_of_tests.proto", package="toolkit.dump", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields:
            number, field, kind = text.split()
            made = message.field.add(name=field, number=int(number), label=3 if kind.endswith("*") else 1)
            kind = kind.rstrip("*")
            if kind in _MESSAGES:
                made.type, made.type_name = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE, f".toolkit.dump.{kind}"
            else:
                made.type = getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    made_class = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(pool).GetPrototype
    return {name: made_class(pool.FindMessageTypeByName(f"toolkit.dump.{name}")) for name in _MESSAGES}


CLASSES = _classes()


def dump_bytes(
    name: str,
    outputs: Sequence[dict[str, Any]],
    inputs: Sequence[dict[str, Any]] = (),
    attributes: dict[str, str] | None = None,
    inside: bool = False,
) -> bytes:
    """Return the bytes of a dump file.

    Args:
        name: of the operator.
        outputs, inputs: ``raw`` bytes, ``type``, ``format``, ``shape`` and ``original_shape``; outputs also ``original``
            and ``original_output``.
        attributes: of the operator.
        inside: write tensors into the message.
    """
    data = CLASSES["DumpData"](version="2.0", dump_time=1700000000000000, op_name=name)
    for key, value in (attributes or {}).items():
        data.attr.add(name=key, value=value)
    rest = b""
    for each, repeated in [(each, data.input) for each in inputs] + [(each, data.output) for each in outputs]:
        tensor = repeated.add(
            data_type=TYPES.get(each["type"], each["type"]) if isinstance(each["type"], str) else each["type"]
        )
        tensor.format = FORMATS[each.get("format", "ND")]
        tensor.shape.dim.extend(each["shape"])
        tensor.original_shape.dim.extend(each.get("original_shape", each["shape"]))
        tensor.size, tensor.address, tensor.sub_format = len(each["raw"]), 0x1000, each.get("groups", 0)
        if repeated is data.output and each.get("original"):
            tensor.original_op.name, tensor.original_op.output_index = each["original"], each.get("original_output", 0)
        if repeated is data.output and each.get("original_format"):
            tensor.original_op.data_type, tensor.original_op.format = 1, FORMATS[each["original_format"]]
        if inside:
            tensor.data = each["raw"]
        else:
            rest += each["raw"]
    head = data.SerializeToString()
    return len(head).to_bytes(8, "little") + head + rest


def tensor(array: np.ndarray, layout: str = "ND", letters: str = "", dtype: str = "", **more: Any) -> dict[str, Any]:
    """Return an array as an input or output of dump_bytes.

    Args:
        array: in the shape in the graph.
        layout: in memory.
        letters: of the axes in the graph, like NHWC.
        dtype: in memory; that of the array without it.
        more: further keys.
    """
    kind = dtype or str(array.dtype)
    shape = list(array.shape)
    if kind == "bfloat16":
        stored = (np.ascontiguousarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    else:
        stored = array.astype(kind)
    stored = laid_out(stored, layout, letters, more.get("groups", 1))
    return {
        "raw": stored.tobytes(),
        "type": kind,
        "format": layout,
        "shape": list(stored.shape),
        "original_shape": shape,
        **more,
    }


def laid_out(array: np.ndarray, layout: str, letters: str, groups: int = 1) -> np.ndarray:
    """Return an array in a layout of the device: each element is put to its place."""
    c0 = 32 if array.dtype.itemsize == 1 else 16
    if layout == "FRACTAL_NZ":
        rows, columns = array.shape[-2:] if array.ndim > 1 else (1, array.shape[0])
        flat = array.reshape(-1, rows, columns)
        made = np.zeros((len(flat), -(-columns // c0), -(-rows // 16), 16, c0), array.dtype)
        for row in range(rows):
            for column in range(columns):
                made[:, column // c0, row // 16, row % 16, column % c0] = flat[:, row, column]
        return made.reshape(*array.shape[:-2], *made.shape[1:])
    if layout == "ND" or not letters or layout == letters:
        return array
    if len(layout) == len(letters):
        return np.ascontiguousarray(array.transpose([letters.index(letter) for letter in layout]))
    at = {letter: array.shape[place] for place, letter in enumerate(letters)}
    n, c, d, h, w = (at.get(letter, 1) for letter in "NCDHW")
    whole = array.transpose([letters.index(letter) for letter in "NCDHW" if letter in letters]).reshape(n, c, d, h, w)
    if layout in ("NC1HWC0", "NDC1HWC0"):
        made = np.zeros((n, d, -(-c // c0), h, w, c0), array.dtype)
        for channel in range(c):
            made[:, :, channel // c0, :, :, channel % c0] = whole[:, channel]
        return made if layout == "NDC1HWC0" else made[:, 0]
    assert layout in ("FRACTAL_Z", "FRACTAL_Z_3D")
    if groups > 1:
        return _grouped(whole[:, :, 0], c0, groups)
    made = np.zeros((d, -(-c // c0), h, w, -(-n // 16), 16, c0), array.dtype)
    for channel in range(c):
        for number in range(n):
            made[:, channel // c0, :, :, number // 16, number % 16, channel % c0] = whole[number, channel]
    return made.reshape(-1, *made.shape[4:])


def _grouped(whole: np.ndarray, c0: int, groups: int) -> np.ndarray:
    n, c, h, w = whole.shape
    each = n // groups
    shared = min(np.lcm(np.lcm(c, c0) // c, np.lcm(each, 16) // each), groups)
    c1, n1 = -(-shared * c // c0), -(-shared * each // 16)
    made = np.zeros((-(-groups // shared), c1, h, w, n1, 16, c0), whole.dtype)
    for number in range(n):
        group = number // each
        column = group % shared * each + number % each
        for channel in range(c):
            row = group % shared * c + channel
            made[group // shared, row // c0, :, :, column // 16, column % 16, row % c0] = whole[number, channel]
    return made.reshape(-1, n1, 16, c0)
