"""Kinds of operators beyond their types: a collective, or npu_shim's form of an operator of the device."""

from __future__ import annotations

import os
import re
from typing import Sequence

from npu_shim.rehearsal.assess.flat import Node

COLLECTIVE = re.compile(r"^(Hcom|Horovod|Collective|Nccl)")
_CALLS_PYTHON = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
_OWN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_DISTRIBUTED, _OPS = _OWN + "distributed" + os.sep, _OWN + "ops" + os.sep


def rename(nodes: Sequence[Node]) -> None:
    """Give the Python functions that npu_shim adds on the CPU the names of what they are on the device."""
    for node in nodes:
        if node.op in _CALLS_PYTHON:
            files = [os.path.abspath(frame[0]) for frame in node.source.traceback or ()]
            if any(path.startswith(_DISTRIBUTED) for path in files):
                node.op = _collective(node.source.name)
            elif any(path.startswith(_OPS) for path in files):
                node.op = "Npu"


def _collective(name: str) -> str:
    kinds: dict[str, str] = {
        "broadcast": "HcomBroadcast",
        "allgather": "HcomAllGather",
        "reduce_scatter": "HcomReduceScatter",
        "all_to_all": "HcomAllToAllV",
        "send": "HcomSend",
        "receive": "HcomReceive",
    }
    return next((op for word, op in kinds.items() if word in name.lower()), "HcomAllReduce")
