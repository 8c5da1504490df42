"""Make the variables of a graph constants."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_export import LOOPS
from npu_shim.exporting.nodes import ExportError, attribute, set_constant, set_identity, split

if TYPE_CHECKING:
    import numpy as np

    from npu_shim._tensorflow.types import GraphDef

tf = tf_api.tf
VARIABLES = ("VariableV2", "Variable", "VarHandleOp", "AutoReloadVariable")
_REFERENCES = {"RefIdentity": "Identity", "RefSwitch": "Switch", "RefMerge": "Merge", "RefEnter": "Enter"}
_OUTPUT = re.compile(":value:")
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
            types[node.name] = tf.TensorSpec(values[node.name].shape, tf.as_dtype(node.attr["dtype"].type))
            set_constant(node, values[node.name], types[node.name].dtype)
        node.op = _REFERENCES.get(node.op, node.op)
    _take_values(graph.node, types, "", {each.signature.name: each for each in graph.library.function})


def _take_values(nodes: Any, types: dict[str, Any], output: str, functions: dict[str, Any]) -> None:
    """Follow the handles of variables, by the name of what has the value now.

    Args:
        nodes: of the graph, or of a function that is a loop.
        types: of these values.
        output: end of the name of a constant as an input.
        functions: by name.
    """
    more = True
    while more:  # handles pass Identity, Switch and Enter
        more = False
        for node in list(nodes):
            sources = [each.split(":")[0] for each in node.input]
            if node.op in LOOPS:
                _into_loop(
                    node, {number: types[each] for number, each in enumerate(sources) if each in types}, functions
                )
            elif sources and sources[0] in types and node.name not in types:
                if attribute(node, "T") == tf.resource.as_datatype_enum:
                    node.attr["T"].type = types[sources[0]].dtype.as_datatype_enum
                    types[node.name] = types[sources[0]]
                    more = True
                else:
                    _take_value(nodes, node, types[sources[0]].dtype, output)


def _into_loop(loop: Any, types: dict[int, Any], functions: dict[str, Any]) -> None:
    """Let the functions of a loop take values where it took handles."""
    handles = {number for number, each in enumerate(loop.attr["T"].list.type) if each == tf.resource.as_datatype_enum}
    for number in handles & set(types):
        loop.attr["T"].list.type[number] = types[number].dtype.as_datatype_enum
        if loop.attr["output_shapes"].list.shape:
            loop.attr["output_shapes"].list.shape[number].CopyFrom(types[number].shape.as_proto())
        for key in ("cond", "body"):
            function = functions[loop.attr[key].func.name]
            function.attr.pop("_input_shapes", None)  # of the handles
            argument = function.signature.input_arg[number]
            argument.type = types[number].dtype.as_datatype_enum
            if key == "body":
                function.signature.output_arg[number].type = argument.type
            reads = {node.name for node in function.node_def if node.op == "ReadVariableOp"}
            _take_values(function.node_def, {argument.name: types[number]}, ":output:0", functions)
            reads -= {node.name for node in function.node_def if node.op == "ReadVariableOp"}
            for node in function.node_def:  # what was the output "value" of a read is "output" of the identity
                node.input[:] = [
                    _OUTPUT.sub(":output:", each) if each.split(":")[0] in reads else each for each in node.input
                ]
            for name, each in list(function.ret.items()):
                function.ret[name] = _OUTPUT.sub(":output:", each) if each.split(":")[0] in reads else each


def _take_value(nodes: Any, node: Any, dtype: Any, output: str) -> None:
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
        axis = nodes.add(name=f"{node.name}/npu_shim_axis")
        set_constant(axis, batch, tf.int32)
        if not output:  # a constant of a loop of TensorFlow 1 needs an input from the loop
            axis.input.append(f"^{split(node.input[1])[0]}")
        node.input.insert(2, axis.name + output)
    elif node.op == "VariableShape":
        out = attribute(node, "out_type") or tf.int32.as_datatype_enum
        node.op = "Shape"
        node.attr.clear()
        node.attr["T"].type = dtype.as_datatype_enum
        node.attr["out_type"].type = out


def refuse_what_stays(graph: GraphDef) -> None:
    """Raise an error for ops that a frozen graph cannot have."""
    functions = {function.signature.name for function in graph.library.function}
    for node in [*graph.node, *(node for function in graph.library.function for node in function.node_def)]:
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
        if node.op in functions or node.op in ("PartitionedCall", "StatefulPartitionedCall", "If"):
            raise ExportError(
                f"{node.name} ({node.op}) is still a function. Export from a graph without it, with --inputs after it "
                "or --outputs before it."
            )
        if re.match(r"Assign|Scatter(Nd)?(Add|Sub|Update)|Resource(Scatter|StridedSlice)", node.op):
            raise ExportError(
                f"{node.name} ({node.op}) changes a variable while the model predicts. Make the state an input and an "
                "output."
            )
