"""Kinds of ops: the unit that runs them, and the bottleneck that their time belongs to."""

from __future__ import annotations

import json
import pkgutil
import re
from typing import Any, NamedTuple

COMPUTE, AI_CPU, COMMUNICATION, INPUT, HOST, TRANSFER, OTHER = (
    "compute", "AI CPU", "communication", "input pipeline", "host", "transfers", "other"
)  # fmt: skip
# Time belongs to the first of them that is busy.
CATEGORIES = (COMPUTE, AI_CPU, COMMUNICATION, TRANSFER, HOST, INPUT)

# categories: an op belongs to the first one whose patterns of the type and core fit; OTHER waits, or marks something.
# bottlenecks -> title: of a finding; fix: in the terms of npu_shim; see: a page of the documentation; replaced: True if
# another op takes the place of what it names; functions: a pattern of functions of the host; ops: patterns of the
# category, name, type and types of its ops, one row of which has to fit; instead: such patterns, and what to use
# instead of the ops that fit the first
_KINDS = json.loads(pkgutil.get_data(__name__, "kinds.json") or b"")
KINDS: dict[str, dict[str, Any]] = _KINDS["bottlenecks"]
_OPS = [{**row, "kind": name} for name, made in KINDS.items() for row in made.get("ops", ())]
_MATRIX = re.compile(
    r"(?!\w*(Bias|Pool))\w*(MatMul|Matmul|Conv[23]D|Conv2d|GEMM|FlashAttention|FusedInferAttention|BasicLSTM|DynamicRNN|DynamicGRU|Einsum)\w*"
)


class Signature(NamedTuple):
    """Cells that are equal in many rows: those of one op with one shape."""

    device: str = ""
    step: str = ""
    name: str = ""
    type: str = ""
    core: str = ""
    shapes: str = ""
    types: str = ""
    out_shapes: str = ""
    out_types: str = ""
    out_formats: str = ""


def category(each: Signature) -> str:
    """Return who is busy with an op: one of CATEGORIES, or OTHER for tasks that wait or mark something."""
    return _first(_KINDS["categories"], type=each.type, core=each.core)["is"]


def kind(each: Signature) -> str:
    """Return the kind of bottleneck that the time of an op belongs to, the first of KINDS that fits, "" for none."""
    return "" if category(each) in (COMMUNICATION, OTHER) else _of(each, _OPS).get("kind", "")


def instead(each: Signature) -> str:
    """Return what to use instead of an op on the AI CPU, empty if nothing is known."""
    return _of(each, KINDS["ai-cpu"]["instead"]).get("use", "")


def _of(each: Signature, rows: list[dict[str, str]]) -> dict[str, str]:
    types = f"{each.types};{each.out_types}"
    return _first(rows, category=category(each), name=each.name.lower(), type=each.type, types=types)


def _first(rows: list[dict[str, str]], **cells: str) -> dict[str, str]:
    """Return the first row whose patterns fit the cells, an empty one if none does."""
    return next(
        (row for row in rows if all(re.fullmatch(row.get(name, ".*"), cells[name], re.S) for name in cells)), {}
    )


def is_matrix(each: Signature) -> bool:
    """Return True for an op of the matrix unit."""
    return bool(_MATRIX.fullmatch(each.type)) and category(each) == COMPUTE
