"""Forms of the ops of a GraphDef that is imported: a frozen model, a MetaGraph, a function of a SavedModel.

The nodes of a form take the place of a node, and its results have the name of that. What a GraphDef does not say of the
shapes, such as groups of channels where it has other functions, is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Mapping

import tensorflow as tf

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_op_forms import Form, as_asked, dtypes_of_inputs, in_graph

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import DType, Graph, GraphDef, Message, Tensor

v1 = tf.compat.v1
_RESULT = "result"


def with_forms(graph_def: GraphDef, forms: Mapping[str, Form], load: Callable[[GraphDef], object]) -> GraphDef:
    """Return a GraphDef with the forms of its nodes, or itself if it has none.

    Args:
        graph_def: what a script imports; it does not change.
        forms: by the type of op.
        load: imports a GraphDef into the default graph.
    """
    wanted = {node.name for node in graph_def.node if node.op in forms and _may_have(forms[node.op], node)}
    if not wanted:
        return graph_def
    graph = _loaded(graph_def, load)
    made = {node.name: _nodes(node, forms[node.op], graph) for node in graph_def.node if node.name in wanted}
    if not any(made.values()):
        return graph_def
    result = v1.GraphDef(versions=graph_def.versions, library=graph_def.library)
    for node in graph_def.node:
        result.node.extend(made.get(node.name) or [node])
    return result


def _may_have(form: Form, node: Message) -> bool:
    """Return False for a node that has no form because of its types, or whose form is a loop."""
    types = {value.type for value in node.attr.values()}
    return "data_format" in node.attr or any(dtype.as_datatype_enum in types for dtype in form.dtypes)


def _loaded(graph_def: GraphDef, load: Callable[[GraphDef], object]) -> Graph | None:
    """Return a graph with the nodes, for their shapes; None if they need functions of another graph."""
    graph = tf.Graph()
    try:
        with graph.as_default():
            load(graph_def)
    except (ValueError, KeyError, tf.errors.OpError):
        return None
    return graph


def _nodes(node: Message, form: Form, graph: Graph | None) -> list[Message]:
    """Return the nodes of the form of a node; none if it has no form."""
    given = [each for each in node.input if not each.startswith("^")]
    fragment = tf.Graph()
    with fragment.as_default():
        known = graph.get_operation_by_name(node.name).inputs if graph else [None] * len(given)
        inputs = [_input(place, dtype, each) for place, (dtype, each) in enumerate(zip(dtypes_of_inputs(node), known))]
        asked = as_asked(node, inputs)
        formed = in_graph(form, node.op, _RESULT, {**asked.attributes, **asked.inputs}, list) if asked else None
    if formed is None:
        return []
    control = [each for each in node.input if each.startswith("^")]
    # Constants come from the frame of a loop that the node is in.
    source = "^" + given[0].split(":")[0]

    def renamed(name: str) -> str:
        if name.startswith("input_"):
            return given[int(name[len("input_") :])]
        return node.name + name[len(_RESULT) :] if name.split("/")[0] == _RESULT else f"{node.name}/{name}"

    made = []
    for each in fragment.as_graph_def().node:
        if each.op == "Placeholder":
            continue
        each.name = renamed(each.name)
        each.input[:] = [*(_renamed_input(renamed, name) for name in each.input), *control]
        if not each.input:
            each.input.append(source)
        each.device = node.device
        made.append(each)
    return made


def _renamed_input(renamed: Callable[[str], str], name: str) -> str:
    """Return the new name of an input, which may be one of several outputs or a control input."""
    before, name = ("^", name[1:]) if name.startswith("^") else ("", name)
    name, colon, output = name.partition(":")
    return before + (renamed(name) if name.startswith("input_") else renamed(name) + colon + output)


def _input(place: int, dtype: DType, known: Tensor | None) -> Tensor:
    """Return a constant for an input of constant sizes, and a placeholder for another one."""
    if known is not None and dtype.is_integer and known.shape.rank == 1 and known.shape[0] in (4, 5):
        sizes = tf_api.static_shape(known)
        if sizes.is_fully_defined():
            return tf.constant(sizes.as_list(), dtype, name=f"sizes_{place}")
    return v1.placeholder(dtype, None if known is None else known.shape, name=f"input_{place}")
