"""Kinds of ops: the unit that runs them, and the bottleneck that their time belongs to."""

from __future__ import annotations

import json
import os
import re
from typing import Any, NamedTuple

COMPUTE, AI_CPU, COMMUNICATION, INPUT, HOST, TRANSFER, OTHER = (
    "compute", "AI CPU", "communication", "input pipeline", "host", "transfers", "other"
)  # fmt: skip
# Time belongs to the first of them that is busy.
CATEGORIES = (COMPUTE, AI_CPU, COMMUNICATION, TRANSFER, HOST, INPUT)

# An op belongs to the category of the first row whose pattern its type or core fits; OTHER waits, or marks something.
_CATEGORIES = (
    (INPUT, "type", r"((Dynamic|Device)?GetNext|Iterator(V2)?(GetNext)?|\w*IteratorGetNext)$"),
    (INPUT, "type", "(QueueDequeue|QueueTryDequeue|DequeueFromQueue)$"),
    (HOST, "type", r"((Eager|Stateless)?PyFunc(Stateless)?|HostFunc\w*|NumpyFunction|Print(V2)?)$"),
    (HOST, "core", "HOST(_FUNC)?$"),
    (COMMUNICATION, "core", ".*(COMMUNICATION|HCCL|HCOM)"),
    (COMMUNICATION, "type", "hcom_|Hcom|Horovod|Collective|Nccl|HcclAll|all_?reduce|(reduce|all)_?(scatter|gather)"),
    (AI_CPU, "core", ".*AI_?CPU"),
    (TRANSFER, "core", ".*(MEMCPY|PCIE|SDMA|D2H|H2D|RDMA)"),
    (OTHER, "core", ".*(EVENT|NOTIFY|WAIT|PLACE_?HOLDER|PROFILING|WRITE_VALUE|STREAM|LABEL|MODEL|FLIP|CALLBACK|START)"),
    (OTHER, "core", ".*(MAINTENANCE|RECORD)"),
    (COMPUTE, "type", "."),
    (COMPUTE, "core", ".*(CORE|VECTOR|AI[CV]|MIX|DSA|KERNEL|FFTS|CPU)"),  # task_time has no types
)
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


# A kind of bottleneck -> title: of a finding; fix: in the terms of npu_shim; see: a page of the documentation;
# replaced: True if another op takes the place of what it names; ops: patterns of the category, name, type and types of
# its ops, one row of which has to fit; instead: such patterns, and what to use instead of the ops that fit the first
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "kinds.json"), encoding="utf-8") as _stream:
    KINDS: dict[str, dict[str, Any]] = json.load(_stream)
_OPS = [{**row, "kind": name} for name, made in KINDS.items() for row in made.get("ops", ())]


def category(each: Signature) -> str:
    """Return who is busy with an op: one of CATEGORIES, or OTHER for tasks that wait or mark something."""
    fits = (name for name, field, pattern in _CATEGORIES if re.match(pattern, getattr(each, field), re.I))
    return next(fits, OTHER)


def kind(each: Signature) -> str:
    """Return the kind of bottleneck that the time of an op belongs to, the first of KINDS that fits, "" for none."""
    return "" if category(each) in (COMMUNICATION, OTHER) else _first(each, _OPS).get("kind", "")


def instead(each: Signature) -> str:
    """Return what to use instead of an op on the AI CPU, empty if nothing is known."""
    return _first(each, KINDS["ai-cpu"]["instead"]).get("use", "")


def _first(each: Signature, rows: list[dict[str, str]]) -> dict[str, str]:
    """Return the first row whose patterns fit an op, an empty one if none does."""
    types = f"{each.types};{each.out_types}"
    cells = {"category": category(each), "name": each.name.lower(), "type": each.type, "types": types}
    return next(
        (row for row in rows if all(re.fullmatch(row.get(name, ".*"), cells[name], re.S) for name in cells)), {}
    )


def on_cpu(each: Signature) -> bool:
    """Return True for an op of TensorFlow on the CPU."""
    return each.core.upper() == "CPU"


def is_matrix(each: Signature) -> bool:
    """Return True for an op of the matrix unit."""
    return bool(_MATRIX.fullmatch(each.type)) and category(each) == COMPUTE
