"""The batch of training in a graph: reshapes that keep it take any other one."""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow import tf_api, tf_capture
from npu_shim._tensorflow.types import Graph, GraphDef, Operation
from npu_shim.exporting.graph_defs import ExportError, Notes, nodes_by_name, set_constant, unused_node_name
from npu_shim.exporting.ports import Port

tf = tf_api.tf


def fit_reshapes_to_batch(part: GraphDef, graph: Graph, inputs: Sequence[Port], outputs: Sequence[Port]) -> Notes:
    """Write reshapes to the batch of training for the asked batch, in place.

    Args:
        part: the nodes of the model, with placeholders for its inputs.
        graph: the graph of the source.
        inputs, outputs: of the model, as the command asks for them.
    Returns:
        A line if there are any.
    Raises:
        ExportError: the graph needs the batch of training elsewhere.
    """
    trained = {size for size in (_fixed_batch_size(graph, port) for port in inputs) if size is not None}
    asked = {port.shape[0] for port in inputs if port.shape and _fixed_batch_size(graph, port) is not None}
    if len(trained) != 1 or len(asked) != 1 or trained == asked:
        return []
    (old,), (new,) = trained, asked
    nodes, there, written = nodes_by_name(part), {op.name: op for op in graph.get_operations()}, []
    for name, op in there.items():
        if name in nodes and op.type == "Reshape" and _keeps_batch_dimension(op, old):
            shape = part.node.add(name=unused_node_name(part, f"{name}/any_batch"))
            set_constant(shape, [-1, *op.outputs[0].shape.as_list()[1:]], tf.int32)
            nodes[name].attr["Tshape"].type = tf.int32.as_datatype_enum
            nodes[name].input[1] = shape.name
            written.append(name)
    try:
        imported = tf_capture.import_into_new_graph(part)
    except ValueError as error:  # of TensorFlow, which infers shapes
        raise ExportError(_problem_text(old, new, str(error).splitlines()[0])) from None
    for name in written:
        if imported.get_tensor_by_name(f"{name}:0").op.inputs[0].shape.as_list()[0] != new:
            raise ExportError(_problem_text(old, new, f"{name} does not keep the batch."))
    for port in outputs:
        if _fixed_batch_size(graph, port) == old and imported.get_tensor_by_name(port.tensor).shape.as_list()[:1] == [
            old
        ]:
            raise ExportError(_problem_text(old, new, f"{port.tensor} keeps {old}."))
    return [f"reshapes to the batch {old} of training take any batch"] if written else []


def _fixed_batch_size(graph: Graph, port: Port) -> int | None:
    """Return the batch of an input in the source; None if it has no fixed one."""
    shape = graph.get_tensor_by_name(port.tensor).shape
    return shape.as_list()[0] if shape.rank else None


def _keeps_batch_dimension(op: Operation, batch: int) -> bool:
    """Return True for a reshape that keeps the batch, whose sizes do not follow from the shape of its input."""
    before, after = op.inputs[0].shape, op.outputs[0].shape
    if not before.rank or not after.rank or None in after.as_list() or before.as_list()[0] != batch:
        return False
    return after.as_list()[0] == batch and tf.get_static_value(op.inputs[1]) is not None


def _problem_text(old: int, new: int | None, reason: str) -> str:
    text = "any batch" if new is None else f"the batch {new}"
    return f"the graph has the batch {old} of training, and does not fit {text}: {reason} Give --inputs with {old}."
