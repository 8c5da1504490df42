"""Kinds of ops: the unit that runs them, and the bottleneck that their time belongs to."""

from __future__ import annotations

import json
import os
import re
from typing import NamedTuple

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
    r"\w*(MatMul|Matmul|Conv[23]D|Conv2d|GEMM|FlashAttention|FusedInferAttention|BasicLSTM|DynamicRNN|DynamicGRU|Einsum)\w*"
)
_NOT_MATRIX = re.compile(r"\w*(Bias|Pool)\w*")
_SMALL = {True: 30_000, False: 10_000}  # nanoseconds, on the CPU and on the NPU


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


class Kind(NamedTuple):
    """A kind of bottleneck.

    Attributes:
        title: of a finding.
        fix: what to do, in the terms of npu_shim.
        see: a page of the documentation.
        replaced: True if another op takes the place of what it names; False if nothing does.
        ops: patterns of the category, name, type and data types of its ops; one of the rows has to fit.
        instead: such patterns, and what to use instead of the ops that fit the first of them.
    """

    title: str
    fix: str
    see: str
    replaced: bool = False
    ops: list[dict[str, str]] = []
    instead: list[dict[str, str]] = []


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "kinds.json"), encoding="utf-8") as _stream:
    KINDS: dict[str, Kind] = {name: Kind(**row) for name, row in json.load(_stream).items()}


def category(each: Signature) -> str:
    """Return who is busy with an op: one of CATEGORIES, or OTHER for tasks that wait or mark something."""
    fits = (name for name, field, pattern in _CATEGORIES if re.match(pattern, getattr(each, field), re.I))
    return next(fits, OTHER)


def kind(each: Signature) -> str:
    """Return the kind of bottleneck that the time of an op belongs to, the first of KINDS that fits, "" for none."""
    if category(each) in (COMMUNICATION, OTHER):
        return ""
    cells = _cells(each)
    return next((name for name, row in KINDS.items() if any(_fits(cells, op) for op in row.ops)), "")


def instead(each: Signature) -> str:
    """Return what to use instead of an op on the AI CPU, empty if nothing is known."""
    cells = _cells(each)
    return next((row["use"] for row in KINDS["ai-cpu"].instead if _fits(cells, row)), "")


def _cells(each: Signature) -> dict[str, str]:
    types = f"{each.types};{each.out_types}"
    return {"category": category(each), "name": each.name.lower(), "type": each.type, "types": types}


def _fits(cells: dict[str, str], patterns: dict[str, str]) -> bool:
    return all(re.fullmatch(patterns[field], cells[field]) for field in cells if field in patterns)


def on_cpu(each: Signature) -> bool:
    """Return True for an op of TensorFlow on the CPU."""
    return each.core.upper() == "CPU"


def small(each: Signature) -> int:
    """Return the nanoseconds below which an op costs less than its launch."""
    return _SMALL[on_cpu(each)]


def is_matrix(each: Signature) -> bool:
    """Return True for an op of the matrix unit."""
    return bool(_MATRIX.fullmatch(each.type)) and not _NOT_MATRIX.fullmatch(each.type) and category(each) == COMPUTE
