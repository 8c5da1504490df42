"""Forms of the ops of a GraphDef that is imported: a frozen model, a MetaGraph, a function of a SavedModel.

The nodes of a form take the place of a node, and its results have the name of that. The functions of the library are
rewritten as well. A shape that neither a node nor TensorFlow's inference gives is not known.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence

import tensorflow as tf
from tensorflow.python.eager import context as _context
from tensorflow.python.framework import function_def_to_graph as _functions

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_op_forms import (
    Form,
    asked_op_of_node,
    create_form_in_graph,
    dtypes_of_inputs,
    name_prefixes_of_forms,
    operator_definition,
)
from npu_shim._tensorflow.types import DType, GraphDef, Message, Operation, Tensor

v1 = tf.compat.v1
_RESULT = "result"
_SIZES = 8  # an integer input with no more elements is one of sizes
# Imports a GraphDef into the default graph. Returns the ops with these names.
Load = Callable[["GraphDef", Sequence[str]], Sequence["Operation"]]


def graph_def_with_forms(graph_def: GraphDef, forms: Mapping[str, Form], load: Load) -> GraphDef:
    """Return a GraphDef with the forms of its nodes and functions, or itself if it has none.

    Args:
        graph_def: what a script imports; it does not change.
        forms: by the type of op.
        load: imports a GraphDef.
    """
    functions = graph_def.library.function
    if not any(
        _names_with_forms(nodes, forms) for nodes in (graph_def.node, *(function.node_def for function in functions))
    ):
        return graph_def
    existing = _existing_functions(functions)
    result = v1.GraphDef(versions=graph_def.versions)
    result.library.gradient.extend(graph_def.library.gradient)
    with tf.Graph().as_default():
        nodes = _replace_nodes_by_forms(_Body(graph_def.node, False), forms, _ops_with_forms(graph_def, load, forms))
        result.node.extend(nodes.all)
        bodies = [nodes]
        for function in functions:
            definition = existing.get(function.signature.name, function)
            if definition is function and _names_with_forms(function.node_def, forms):
                bodies.append(
                    _replace_nodes_by_forms(
                        _Body(function.node_def, True), forms, _ops_of_function_with_forms(function, load, forms)
                    )
                )
                definition = _replace_nodes_of_function(function, bodies[-1])
            result.library.function.add().CopyFrom(definition)
        for nodes in bodies:
            result.library.function.extend(nodes.functions)
    return result if existing or any(nodes.renamed for nodes in bodies) else graph_def


class _Body(NamedTuple):
    """The nodes of a graph, or of a function, where names of tensors have the name of the output in them."""

    nodes: Sequence[Message]
    is_function: bool


class _Nodes(NamedTuple):
    """The nodes of a body with the forms of some.

    Attributes:
        all: the nodes.
        functions: those that the forms call.
        renamed: the nodes that have another form, and the new names of their outputs by the names before.
    """

    all: list[Message]
    functions: list[Message]
    renamed: dict[str, dict[str, str]]


def _names_with_forms(nodes: Sequence[Message], forms: Mapping[str, Form]) -> list[str]:
    """Return the names of the nodes that may have a form."""
    scopes = name_prefixes_of_forms(nodes)
    return [
        node.name
        for node in nodes
        if node.op in forms and _may_have_form(forms[node.op], node) and not node.name.startswith(scopes)
    ]


def _may_have_form(form: Form, node: Message) -> bool:
    """Return False for a node that has no form because of its types."""
    types = {value.type for value in node.attr.values()}
    return not form.dtypes or any(dtype.as_datatype_enum in types for dtype in form.dtypes)


def _existing_functions(functions: Iterable[Message]) -> dict[str, Message]:
    """Return the functions with these names that TensorFlow has already, and refuses to change."""
    names = {function.signature.name for function in functions}
    graph, context = tf.compat.v1.get_default_graph(), _context.context()
    known = {}
    if any(graph._is_function(name) for name in names):
        library = graph.as_graph_def().library.function
        known = {function.signature.name: function for function in library if function.signature.name in names}
    is_function = hasattr(graph, "outer_graph")  # which eager code may call
    if is_function and context._initialized and hasattr(context, "get_function_def"):  # TensorFlow 2
        known.update((name, context.get_function_def(name)) for name in names if context.has_function(name))
    return known


def _ops_with_forms(graph_def: GraphDef, load: Load, forms: Mapping[str, Form]) -> dict[str, Operation]:
    """Return the ops that may have a form, for their shapes; none if they need functions of another graph."""
    names = _names_with_forms(graph_def.node, forms)
    try:
        return dict(zip(names, load(graph_def, names) or []))
    except (ValueError, KeyError, tf.errors.OpError):
        return {}


def _ops_of_function_with_forms(definition: Message, load: Load, forms: Mapping[str, Form]) -> dict[str, Operation]:
    """Return the ops of a function that may have a form; none if they need functions of another graph."""
    shapes: Any = None
    if "_input_shapes" in definition.attr:
        given = zip(definition.attr["_input_shapes"].list.shape, definition.signature.input_arg)
        shapes = [None if arg.type == tf.resource.as_datatype_enum else shape for shape, arg in given]
    with contextlib.suppress(ValueError, KeyError):
        graph_def, _ = _functions.function_def_to_graph_def(definition, shapes)
        return _ops_with_forms(graph_def, load, forms)
    return {}


def _replace_nodes_by_forms(body: _Body, forms: Mapping[str, Form], ops_by_name: Mapping[str, Operation]) -> _Nodes:
    """Return the nodes of a body with their forms."""
    result = _Nodes([], [], {})
    wanted = set(_names_with_forms(body.nodes, forms))
    for node in body.nodes:
        nodes = (
            _form_nodes_of(node, forms[node.op], ops_by_name.get(node.name), body, result)
            if node.name in wanted
            else []
        )
        if nodes:
            result.renamed[node.name] = _output_names(node) if body.is_function else {}
        result.all.extend(nodes or [type(node).FromString(node.SerializeToString())])
    if body.is_function:
        for node in result.all:
            node.input[:] = [_unused_node_name(name, result) for name in node.input]
    return result


def _replace_nodes_of_function(definition: Message, nodes: _Nodes) -> Message:
    """Return a function with other nodes."""
    result = type(definition).FromString(definition.SerializeToString())
    del result.node_def[:]
    result.node_def.extend(nodes.all)
    for output, name in definition.ret.items():
        result.ret[output] = _unused_node_name(name, nodes)
    return result


def _unused_node_name(name: str, nodes: _Nodes) -> str:
    return nodes.renamed.get(name.split(":")[0], {}).get(name, name)


def _output_names(node: Message) -> dict[str, str]:
    """Return the names in a function of the outputs of a node, and those of the results of its form."""
    names = [
        f"{node.name}:{arg.name}:{place}"
        for arg in operator_definition(node.op).output_arg
        for place in range(_number_of_tensors(arg, node.attr))
    ]
    return {name: f"{node.name}:output:{place}" for place, name in enumerate(names)}


def _number_of_tensors(arg: Message, attributes: Mapping[str, Message]) -> int:
    """Return the number of tensors of an argument of a node."""
    if arg.number_attr:
        return int(attributes[arg.number_attr].i)
    return len(attributes[arg.type_list_attr].list.type) if arg.type_list_attr else 1


def _form_nodes_of(node: Message, form: Form, op: Operation | None, body: _Body, result: _Nodes) -> list[Message]:
    """Return the nodes of the form of a node; none if it has no form. Add the functions that they call."""
    given = [name for name in node.input if not name.startswith("^")]
    control = [name for name in node.input if name.startswith("^")]
    fragment = tf.Graph()
    with fragment.as_default():
        shapes = op.inputs if op is not None else [None] * len(given)
        inputs = [
            _constant_or_placeholder(place, dtype, like)
            for place, (dtype, like) in enumerate(zip(dtypes_of_inputs(node), shapes))
        ]
        asked = asked_op_of_node(node, inputs)
        try:
            formed = create_form_in_graph(form, node.op, _RESULT, {**asked.attributes, **asked.inputs}, list)
        except (NotImplementedError, ValueError):
            if not body.is_function:
                raise
            return []  # nobody may call the function: the op itself reports it when it runs
    if formed is None:
        return []

    def renamed(name: str) -> str:
        return node.name + name[len(_RESULT) :] if name.split("/")[0] == _RESULT else f"{node.name}/{name}"

    def renamed_input(name: str) -> str:
        before, name = ("^", name[1:]) if name.startswith("^") else ("", name)
        name, _, place = name.partition(":")
        if name.startswith("input_"):
            return before + (given[int(name[len("input_") :])].split(":")[0] if before else given[int(name[6:])])
        if before or not body.is_function:
            return before + renamed(name) + (place and ":" + place)
        return renamed(name) + ":" + _output_suffix(fragment.get_operation_by_name(name), int(place or 0))

    # Constants come from the frame of a loop that the node is in. A node without inputs is in no loop.
    source = given[0].split(":")[0] if given else ""
    frame = ["^" + source] if any(other.name == source and other.input for other in body.nodes) else []
    nodes = []
    fragment_def = fragment.as_graph_def()
    for part in fragment_def.node:
        if part.op == "Placeholder":
            continue
        is_first = not part.input or any(name.startswith("input_") for name in part.input)
        part.name = renamed(part.name)
        part.input[:] = [renamed_input(name) for name in part.input] or frame
        if is_first:  # the others wait for these, and may be in a loop
            part.input.extend(control)
        if "frame_name" in part.attr:
            part.attr["frame_name"].s = tf.compat.as_bytes(node.name + "/") + part.attr["frame_name"].s
        part.attr.pop("_class", None)  # no name of another node in it is renamed
        part.device = node.device
        nodes.append(part)
    result.functions.extend(fragment_def.library.function)
    return nodes


def _output_suffix(op: Operation, place: int) -> str:
    """Return the name of an output of an op behind the colon, as functions have it."""
    for arg in operator_definition(op.type).output_arg:
        number = _number_of_tensors(arg, op.node_def.attr)
        if place < number:
            return f"{arg.name}:{place}"
        place -= number
    raise ValueError(f"{op.name} has too few outputs")


def _constant_or_placeholder(place: int, dtype: DType, known: Tensor | None) -> Tensor:
    """Return a constant for an input of constant sizes, and a placeholder for another one."""
    if known is not None and dtype.is_integer and known.shape.rank in (0, 1):
        if known.shape.rank == 0 or (known.shape[0] or 0) <= _SIZES:
            value = tf_api.static_value(known)
            if value is not None:
                return tf.constant(value, dtype, name=f"sizes_{place}")
        if known.shape.rank == 1 and known.shape[0] in (4, 5):
            sizes = tf_api.shape_from_sizes(known)
            if sizes.is_fully_defined():
                return tf.constant(sizes.as_list(), dtype, name=f"sizes_{place}")
    return v1.placeholder(dtype, None if known is None else known.shape, name=f"input_{place}")
