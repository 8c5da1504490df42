"""Leave the notes of a recorded or observed run out of the graphs that the script saves or exports."""

from __future__ import annotations

from npu_shim._tensorflow import tf_api, tf_graph
from npu_shim._tensorflow.types import DType, Function, Graph, Message, Result, Tensor
from npu_shim.rehearsal.recording import methods

tf = tf_api.tf
SCOPE = "npu_shim_note"  # of the ops that note, so that the names of the script's own ops stay
_NOTES = ("PyFunc", "PyFuncStateless")


def add_note(function: Function, values: list[Tensor], types: list[DType] | DType) -> Result:
    """Add an op that gives arrays to a function of ours, as tf.numpy_function. Saved graphs do not have it."""
    with tf.name_scope(SCOPE):
        return tf.numpy_function(function, values, types)


def is_note(name: str) -> bool:
    """Return True for the name of an op that add_note() has made."""
    return SCOPE in name.rpartition("/")[0]


def watch_saved_graphs() -> None:
    """Watch what makes the protobuf message of a graph: another process could not run the notes."""
    methods.wrap_methods(tf.Graph, (tf_graph.AS_GRAPH_DEF,), _graph_def_without_notes)


def _graph_def_without_notes(original: Function, graph: Graph, *args: object, **kwargs: object) -> Result:
    definition, version = original(graph, *args, **kwargs)
    _remove_notes(definition.node)
    for function in definition.library.function:
        removed = _remove_notes(function.node_def)
        for output in [name for name, node in function.control_ret.items() if node in removed]:
            del function.control_ret[output]
            function.signature.control_output.remove(output)
    return definition, version


def _remove_notes(nodes: Message) -> set[str]:
    """Remove the notes from the nodes of a graph or a function. Return their names.

    What depends on the result of one gets its first input, which it returns.
    """
    notes = {
        node.name: node.input[0] if node.input else "" for node in nodes if node.op in _NOTES and is_note(node.name)
    }
    if notes:
        for place in reversed(range(len(nodes))):
            if nodes[place].name in notes:
                del nodes[place]
        for node in nodes:
            kept = [name for name in node.input if name[1:] not in notes or not name.startswith("^")]
            node.input[:] = [notes.get(name.partition(":")[0], name) for name in kept]
    return set(notes)
