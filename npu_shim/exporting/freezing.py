"""Make the variables of a graph constants."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from npu_shim._tensorflow import tf_api
from npu_shim.exporting.nodes import ExportError, attribute, constant, set_constant, set_identity

if TYPE_CHECKING:
    import numpy as np

    from npu_shim._tensorflow.types import GraphDef

tf = tf_api.tf
VARIABLES = ("VariableV2", "Variable", "VarHandleOp", "AutoReloadVariable")
_REFERENCES = {"RefIdentity": "Identity", "RefSwitch": "Switch", "RefMerge": "Merge", "RefEnter": "Enter"}
_TABLES = ("HashTable", "HashTableV2", "MutableHashTableV2", "LookupTableFindV2")


def variables(graph: GraphDef) -> list[str]:
    """Return the nodes of the variables."""
    return [node.name for node in graph.node if node.op in VARIABLES]


def freeze(graph: GraphDef, values: dict[str, np.ndarray]) -> None:
    """Replace variables by their values, in place.

    What takes the handle of a variable then takes its value, so an op that reads it becomes the identity.
    """
    types = {}
    for node in graph.node:
        if node.op in VARIABLES:
            types[node.name] = tf.as_dtype(node.attr["dtype"].type)
            set_constant(node, values[node.name], types[node.name])
        node.op = _REFERENCES.get(node.op, node.op)
    more = True
    while more:  # handles pass Identity, Switch and Enter
        more = False
        for node in graph.node:
            source = node.input[0].rpartition(":")[0] or node.input[0] if node.input else ""
            if source not in types or node.name in types:
                continue
            if attribute(node, "T") == tf.resource.as_datatype_enum:
                node.attr["T"].type = types[source].as_datatype_enum
                types[node.name] = types[source]
                more = True
            else:
                _take_value(graph, node, types[source])


def _take_value(graph: GraphDef, node: Any, dtype: Any) -> None:
    """Let an op that reads from a handle read from the value."""
    if node.op == "ReadVariableOp":
        set_identity(node, node.input[0], dtype)
    elif node.op in ("ResourceGather", "ResourceGatherNd"):
        indices, batch = attribute(node, "Tindices"), attribute(node, "batch_dims", 0)
        node.attr.clear()
        node.attr["Tindices"].type = indices
        node.attr["Tparams"].type = dtype.as_datatype_enum
        if node.op == "ResourceGatherNd":
            node.op = "GatherNd"
            return
        node.op = "GatherV2"
        node.attr["Taxis"].type = tf.int32.as_datatype_enum
        node.attr["batch_dims"].i = batch
        node.input.append(constant(graph, f"{node.name}/axis", batch, tf.int32))
    elif node.op == "VariableShape":
        out = attribute(node, "out_type") or tf.int32.as_datatype_enum
        node.op = "Shape"
        node.attr.clear()
        node.attr["T"].type = dtype.as_datatype_enum
        node.attr["out_type"].type = out


def refuse_what_stays(graph: GraphDef) -> None:
    """Raise an error for ops that a frozen graph cannot have."""
    functions = {function.signature.name for function in graph.library.function}
    for node in graph.node:
        if node.op in _TABLES:
            raise ExportError(
                f"{node.name} ({node.op}) is a lookup table, which a frozen graph cannot have. Look up on the host, "
                "and make its result an input with --inputs."
            )
        if node.op in ("PyFunc", "EagerPyFunc", "PyFuncStateless"):
            raise ExportError(
                f"{node.name} ({node.op}) calls Python. Compute it on the host, and make its result an input with "
                "--inputs."
            )
        if node.op in functions or node.op in ("PartitionedCall", "StatefulPartitionedCall", "While", "If"):
            raise ExportError(
                f"{node.name} ({node.op}) is still a function. Export from a graph without it, with --inputs after it "
                "or --outputs before it."
            )
        if re.match(r"Assign|Scatter(Nd)?(Add|Sub|Update)|Resource(Scatter|StridedSlice)", node.op):
            raise ExportError(
                f"{node.name} ({node.op}) changes a variable while the model predicts. Make the state an input and an "
                "output."
            )
