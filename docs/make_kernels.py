"""Make docs/kernels.md: the ops that TensorFlow computes on GPUs and not on CPUs, and what the CPU does instead.

``python docs/make_kernels.py`` asks the TensorFlow of this Python, which must be one with kernels for GPUs (2.6 and
later), and writes the page.
"""

from __future__ import annotations

import collections
import functools
import itertools
import os
import sys
from typing import Any, Iterator, NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE)]

import tensorflow as tf  # noqa: E402
from tensorflow.python.framework import kernels  # noqa: E402

from npu_shim.ops.cpu_kernels import forms, halves, refused  # noqa: E402

PAGE = os.path.join(HERE, "kernels.md")
_IN_OPTIMIZER = "TensorFlow's own error. Keep the variables in float32, as mixed precision does"
_NO_LAYER = "not needed: no layer or gradient creates it with this type"
# Of ops without a form; of several ops with this at the start, if it ends in "*".
REASONS = {
    "_*": "not needed: no Python code creates it",
    "CreateTRTResourceHandle": "not needed: TensorRT serves models on GPUs",
    "GetCalibrationDataOp": "not needed: TensorRT serves models on GPUs",
    "InitializeTRTResource": "not needed: TensorRT serves models on GPUs",
    "SerializeTRTResource": "not needed: TensorRT serves models on GPUs",
    "TRTEngineOp": "not needed: TensorRT serves models on GPUs",
    "ExperimentalMapDataset": "not needed: MapDataset has taken its place",
    "SparseMatrix*": "not needed: only a private class of TensorFlow creates it",
    "BytesInUse": "not needed: it reads the memory of a GPU",
    "MaxBytesInUse": "not needed: it reads the memory of a GPU",
    "SyncDevice": "not needed: it waits for a GPU",
    "ApplyProximalAdagrad": _IN_OPTIMIZER,
    "ResourceApplyProximalAdagrad": _IN_OPTIMIZER,
    "ResourceSparseApplyProximalAdagrad": _IN_OPTIMIZER,
    "SparseApplyProximalAdagrad": _IN_OPTIMIZER,
    "Add": _NO_LAYER,
    "DepthToSpace": _NO_LAYER,
    "ExtractImagePatches": _NO_LAYER,
    "Inv": _NO_LAYER,
    "MaxPool": _NO_LAYER,
    "MaxPoolV2": _NO_LAYER,
    "Prod": _NO_LAYER,
    "Reciprocal": _NO_LAYER,
    "Relu": _NO_LAYER,
    "Conv3DBackpropFilter": "not needed: Conv3DBackpropFilterV2 has taken its place",
    "Conv3DBackpropInput": "not needed: Conv3DBackpropInputV2 has taken its place",
}


class Row(NamedTuple):
    """An op, the types that only GPUs compute ("" for all), and what the CPU does; "" if nothing is known."""

    op: str
    types: str
    on_cpu: str


@functools.lru_cache(maxsize=None)
def rows() -> list[Row]:
    """Return the ops of this TensorFlow that have a kernel for GPUs, and for some of its types none for the CPU."""
    by_op: dict[str, dict[str, list[Any]]] = collections.defaultdict(lambda: collections.defaultdict(list))
    for kernel in kernels.get_all_registered_kernels().kernel:
        by_op[kernel.op]["CPU" if kernel.device_type == "DEFAULT" else kernel.device_type].append(kernel)
    found = []
    for op, of_op in sorted(by_op.items()):
        missing = {each for kernel in of_op["GPU"] for each in _types(kernel) if not _has(of_op["CPU"], each)}
        if missing:
            names = sorted({tf.as_dtype(dtype).name for each in missing for _, dtype in each if of_op["CPU"]})
            found.append(Row(op, ", ".join(names), _on_cpu(op, set(names))))
    return found


def _types(kernel: Any) -> Iterator[tuple[tuple[str, int], ...]]:
    """Return the types that a kernel is for, by the names of the attributes."""
    limits = [(each.name, list(each.allowed_values.list.type)) for each in kernel.constraint]
    names = [name for name, types in limits if types]
    for types in itertools.product(*(types for _, types in limits if types)):
        yield tuple(zip(names, types))


def _has(of_cpu: list[Any], types: tuple[tuple[str, int], ...]) -> bool:
    wanted = dict(types)
    return any(
        all(
            wanted.get(each.name) in (None, *each.allowed_values.list.type)
            for each in kernel.constraint
            if each.allowed_values.list.type
        )
        for kernel in of_cpu
    )


def _on_cpu(op: str, types: set[str]) -> str:
    if op in refused.INSTEAD:
        return f"an error: {refused.INSTEAD[op]}"
    if op in forms.CHOOSERS and not types:
        return "computed by other ops"
    if types and op in halves.forms_for_half_types() and types <= {dtype.name for dtype in halves.HALVES}:
        return "computed in float32 and rounded"
    for name, reason in REASONS.items():
        if op == name or (name.endswith("*") and op.startswith(name[:-1])):
            return reason
    return ""


def page() -> str:
    """Return the page."""
    lines = [
        "<!-- made by docs/make_kernels.py -->",
        "# Ops that only GPUs compute",
        "",
        f"TensorFlow {tf.__version__} registers kernels of these ops for GPUs, and none for the CPU with the types in",
        "the second column. The third column says what happens in a rehearsal. Other kernels exist and refuse some",
        "attributes, such as channels first: see [Forms for the CPU](decisions.md#forms-for-the-cpu).",
        "",
        "| op | types | on the CPU |",
        "| --- | --- | --- |",
    ]
    lines += [f"| `{row.op}` | {row.types or 'all'} | {row.on_cpu} |" for row in rows() if not row.op.startswith("_")]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page())
