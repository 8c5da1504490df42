"""Kinds of operators beyond their types: a collective, or npu_shim's form of an operator of the device."""

from __future__ import annotations

import os
import re
from typing import Sequence

from npu_shim._tensorflow.op_types import PYTHON_CALLS
from npu_shim._tensorflow.types import Operation
from npu_shim.rehearsal.assess.flat import Node

COLLECTIVE = re.compile(r"^(Hcom|Horovod|Collective|Nccl)")
# On the CPU a collective is the only element of a dataset, so that no thread of a session waits for it.
_RESULTS = frozenset({"DatasetToSingleElement", "IteratorGetNext"})
_AROUND = frozenset({"TensorDataset", "MapDataset", "AnonymousIteratorV2", "MakeIterator", "DeleteIterator"})
_OWN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_DISTRIBUTED, _OPS = _OWN + "distributed" + os.sep, _OWN + "ops" + os.sep


def set_device_op_types(nodes: Sequence[Node]) -> None:
    """Give the nodes that npu_shim adds on the CPU the names of what they are on the device."""
    for node in nodes:
        if node.op in PYTHON_CALLS or node.op in _RESULTS or node.op in _AROUND:
            made_by = _creating_functions(node.source, _DISTRIBUTED)
            if made_by:
                node.op = "Identity" if node.op in _AROUND else _collective_op_type(made_by)
            elif node.op in PYTHON_CALLS and _creating_functions(node.source, _OPS):
                node.op = "Npu"


def is_collective(op: Operation) -> bool:
    """Return True for an operation that npu_shim adds on the CPU for a collective."""
    return bool(_creating_functions(op, _DISTRIBUTED))


def _creating_functions(op: Operation, folder: str) -> list[str]:
    """Return the functions of a folder that were running when an operation was created."""
    return [frame[2] for frame in op.traceback or () if os.path.abspath(frame[0]).startswith(folder)]


def _collective_op_type(made_by: Sequence[str]) -> str:
    kinds: dict[str, str] = {
        "broadcast": "HcomBroadcast",
        "allgather": "HcomAllGather",
        "reduce_scatter": "HcomReduceScatter",
        "alltoall": "HcomAllToAllV",
        "send": "HcomSend",
        "receive": "HcomReceive",
    }
    text = " ".join(made_by).lower()
    return next((op for word, op in kinds.items() if word in text), "HcomAllReduce")
