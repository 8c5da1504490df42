"""Kinds of ops: the unit that runs them, the bottleneck that their time belongs to, and the least time of a run."""

from __future__ import annotations

import itertools
import json
import pkgutil
import re
from dataclasses import dataclass
from typing import Mapping, NamedTuple, Sequence

from npu_shim.rehearsal.assess.products import Product
from npu_shim.rehearsal.predict.features import DeviceOp, Tensor, bytes_moved, element_size_of_type, matrix_flops

COMPUTE, AI_CPU, COMMUNICATION, TRANSFER = "compute", "AI CPU", "communication", "transfers"
HOST, INPUT, OTHER = "host", "input pipeline", "other"
# Time belongs to the first of them that is busy.
CATEGORIES = (COMPUTE, AI_CPU, COMMUNICATION, TRANSFER, HOST, INPUT)

# categories: an op belongs to the first one whose patterns of the type and core fit; OTHER waits, or marks something.
# matrix: the types of the ops of the matrix unit.
# bottlenecks: rows of Kind
_KINDS = json.loads(pkgutil.get_data(__name__, "kinds.json") or b"")


@dataclass(frozen=True)
class Kind:
    """A kind of bottleneck.

    Attributes:
        title: of a finding.
        fix: in the terms of npu_shim.
        see: a page of the documentation.
        replaced: True if another op takes the place of what it names.
        functions: a pattern of functions of the host.
        ops: patterns of the category, name, type and types of its ops, one row of which has to fit.
        instead: such patterns, and what to use instead of the ops that fit the first.
    """

    title: str
    fix: str
    see: str
    replaced: bool = False
    functions: str = "(?!)"
    ops: Sequence[Mapping[str, str]] = ()
    instead: Sequence[Mapping[str, str]] = ()


KINDS = {name: Kind(**row) for name, row in _KINDS["bottlenecks"].items()}
_OPS = [{**row, "kind": name} for name, kind in KINDS.items() for row in kind.ops]


class Signature(NamedTuple):
    """Cells that are equal in many rows: those of one op with one shape."""

    device: str = ""
    step: str = ""
    name: str = ""
    type: str = ""
    core: str = ""
    shapes: str = ""
    types: str = ""
    formats: str = ""
    out_shapes: str = ""
    out_types: str = ""
    out_formats: str = ""


def unit_category(signature: Signature) -> str:
    """Return who is busy with an op: one of CATEGORIES, or OTHER for tasks that wait or mark something."""
    return _first_matching_row(_KINDS["categories"], type=signature.type, core=signature.core)["is"]


def bottleneck_kind(signature: Signature) -> str:
    """Return the kind of bottleneck that the time of an op belongs to, the first of KINDS that fits, "" for none."""
    return (
        "" if unit_category(signature) in (COMMUNICATION, OTHER) else _row_of_signature(signature, _OPS).get("kind", "")
    )


def ai_cpu_replacement(signature: Signature) -> str:
    """Return what to use instead of an op on the AI CPU, empty if nothing is known."""
    return _row_of_signature(signature, KINDS["ai-cpu"].instead).get("use", "")


def _row_of_signature(signature: Signature, rows: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    types = f"{signature.types};{signature.out_types}"
    return _first_matching_row(
        rows, category=unit_category(signature), name=signature.name.lower(), type=signature.type, types=types
    )


def _first_matching_row(rows: Sequence[Mapping[str, str]], **cells: str) -> Mapping[str, str]:
    """Return the first row whose patterns fit the cells, an empty one if none does."""
    return next(
        (row for row in rows if all(re.fullmatch(row.get(name, ".*"), cells[name], re.S) for name in cells)), {}
    )


def is_matrix(signature: Signature) -> bool:
    """Return True for an op of the matrix unit."""
    return bool(re.fullmatch(_KINDS["matrix"], signature.type)) and unit_category(signature) == COMPUTE


def device_op(signature: Signature) -> DeviceOp:
    """Return the op of a signature, without tensors whose shape or type is not known."""
    inputs = _parse_tensors(signature.shapes, signature.types, signature.formats)
    return DeviceOp(
        signature.type, inputs, _parse_tensors(signature.out_shapes, signature.out_types, signature.out_formats)
    )


def _parse_tensors(shapes: str, types: str, layouts: str) -> list[Tensor]:
    """Return the tensors of cells like ``"8,224,224,3;3,3,3,64;"``, where the last one is a number."""
    cells = itertools.zip_longest(
        *(cell.strip().strip('"').split(";") for cell in (shapes, types, layouts)), fillvalue=""
    )
    return [
        Tensor([int(size) for size in shape.split(",") if size], dtype, layout.strip().upper().replace("FORMAT_", ""))
        for shape, dtype, layout in cells
        if re.fullmatch(r"(\d+(,\d+)*)?", shape) and element_size_of_type(dtype)
    ]


def least_nanoseconds(signature: Signature, device: Product) -> float:
    """Return the nanoseconds that a run of an op takes at least, by its operations and its bytes."""
    op = device_op(signature)
    return 1e9 * max(matrix_flops(op) / device.flops, bytes_moved(op) / device.bandwidth)
