"""Variables and lookup tables that the input pipeline reads on the host, although the NPU initializes them."""

from __future__ import annotations

import re
from typing import Iterable

from npu_shim._tensorflow import tf_api, tf_graph, tf_numpy_function
from npu_shim._tensorflow.types import Operation

tf = tf_api.tf

_DATASET = re.compile(r"Dataset|^MakeIterator$|^OneShotIterator$")
_VARIABLE = re.compile(r"^(VarHandleOp|Variable|VariableV2)$")
_TABLE = re.compile(r"^(Mutable|MutableDense)?HashTable(OfTensors)?(V2)?$")


def pipeline_resources(ops: Iterable[Operation], is_mix_compile_mode: bool) -> dict[Operation, str]:
    """Return the variables and tables that datasets read, with what goes wrong on the NPU.

    Args:
        ops: of a graph.
        is_mix_compile_mode: True for ``mix_compile_mode``, in which tables are initialized on the host.
    """
    values = [
        value.op
        for op in ops
        if _DATASET.search(op.type) and tf_numpy_function.BACKGROUND not in op.name
        for value in op.inputs
        if value.dtype != tf.variant and not _DATASET.search(value.op.type)
    ]
    reasons = {}
    for op in tf_graph.reachable_nodes(values, tf_graph.input_ops):  # what only runs before is not read
        if _VARIABLE.match(op.type):
            reasons[op] = (
                "the input pipeline reads this variable on the host, and the NPU initializes it. Use a constant, a "
                "value of Python or a placeholder"
            )
        elif _TABLE.match(op.type) and not is_mix_compile_mode:
            reasons[op] = (
                "the input pipeline reads this lookup table on the host, and the NPU initializes it: 'Table not "
                "initialized'. Set mix_compile_mode=True on the session"
            )
    return reasons
