"""Private parts of TensorFlow's graphs: node attributes, operator types, control flow."""

from __future__ import annotations

import contextlib
from typing import Callable, ContextManager, Iterable, Iterator, Mapping, Sequence, TypeVar

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, op_def_pb2
from tensorflow.python.eager import context as _context
from tensorflow.python.framework import kernels as _kernels, ops as _ops
from tensorflow.python.ops import control_flow_util as _control_flow

from npu_shim._tensorflow.tf_api import static_value
from npu_shim._tensorflow.types import DType, Graph, Message, Operation, Structure, Tensor, Variable

try:
    from tensorflow.python.client import pywrap_tf_session as _c_api
except ImportError:  # TF 1.15
    from tensorflow.python import pywrap_tensorflow as _c_api


v1 = tf.compat.v1
_Node = TypeVar("_Node")
AS_GRAPH_DEF = "_as_graph_def"  # method of a graph: returns its protobuf message, and its version
OLD_CONTROL_FLOW = frozenset({"Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch"})  # of version 1
_REHEARSAL_OPS = "npu_shim_rehearsal_ops"  # attribute of a graph: the number of ops that rehearsals have added


def attr_value(value: bool | int | str) -> attr_value_pb2.AttrValue:
    """Return a Python value as a node attribute."""
    if isinstance(value, bool):
        return attr_value_pb2.AttrValue(b=value)
    if isinstance(value, int):
        return attr_value_pb2.AttrValue(i=value)
    return attr_value_pb2.AttrValue(s=tf.compat.as_bytes(value))


def attr_scope(attrs: Mapping[str, bool | int | str]) -> ContextManager[None]:
    """Return a context manager that sets node attributes on every op created inside."""
    return v1.get_default_graph()._attr_scope({name: attr_value(value) for name, value in attrs.items()})


def set_op_attr(op: Operation, name: str, value: bool | int | str) -> None:
    """Set a node attribute of an existing op."""
    op._set_attr(name, attr_value(value))


@contextlib.contextmanager
def loops_with_second_gradients() -> Iterator[None]:
    """Return a context manager inside which a loop of a graph is one op, as in TensorFlow 2.

    The loops of TensorFlow 1 have no second gradients. Inside a loop or branch of TensorFlow 1 nothing changes.
    """
    before = _control_flow.ENABLE_CONTROL_FLOW_V2
    if v1.get_default_graph()._get_control_flow_context() is None:
        _control_flow.ENABLE_CONTROL_FLOW_V2 = True
    try:
        yield
    finally:
        _control_flow.ENABLE_CONTROL_FLOW_V2 = before


def is_variable(value: object) -> bool:
    """Return True for a variable. A slice of a variable is a tensor, although it has an assign."""
    return hasattr(value, "assign") and not isinstance(value, tf.Tensor)


def assign_and_read(variable: Variable, value: Tensor) -> Tensor:
    """Assign a value to a variable, and return the value that can be read after that."""
    done = variable.assign(value)
    if tf.executing_eagerly():
        return value
    with tf.control_dependencies([done]):
        return tf.identity(value)


def is_variable_reference(tensor: Tensor) -> bool:
    """Return True if a tensor is the reference of a TensorFlow 1 variable."""
    return tensor.dtype._is_ref_dtype


def operator_definitions() -> list[Message]:
    """Return the definitions of all operators of this TensorFlow."""
    return list(op_def_pb2.OpList.FromString(bytes(_c_api.TF_GetBuffer(_c_api.TF_GetAllOpList()))).op)


def has_cpu_kernel(op_type: str) -> bool:
    """Return True if this TensorFlow has the operator with a kernel for CPUs."""
    kernels = _kernels.get_registered_kernels_for_op(op_type)
    return any(kernel.device_type in ("CPU", "DEFAULT") for kernel in kernels.kernel)


def reachable_nodes(
    starts: Iterable[_Node], neighbours: Callable[[_Node], Iterable[_Node]], most: int | None = None
) -> dict[_Node, None]:
    """Return, as keys, some nodes of a graph and those that a walk from them reaches, or the first of these.

    Args:
        starts: operations of a graph, or nodes of any other kind.
        neighbours: returns those to which one step leads.
        most: ends the walk when so many are reached.
    """
    waiting = list(starts)
    seen = dict.fromkeys(waiting)
    while waiting and (most is None or len(seen) < most):
        new = [other for other in dict.fromkeys(neighbours(waiting.pop())) if other not in seen]
        seen.update(dict.fromkeys(new))
        waiting += new
    return seen


def input_ops(op: Operation) -> list[Operation]:
    """Return the ops that compute the inputs of an op."""
    return [tensor.op for tensor in op.inputs]


def input_and_control_ops(op: Operation) -> list[Operation]:
    """Return the ops for which an op waits: those of its inputs and control inputs."""
    return input_ops(op) + list(op.control_inputs)


def ops_with_ancestors(ops: Iterable[Operation]) -> dict[Operation, None]:
    """Return, as keys, ops and all ops that run before them: their inputs and control inputs, and so on."""
    return reachable_nodes(ops, input_and_control_ops)


def contexts_around(op: Operation) -> list[object]:
    """Return the branch or loop of the output of an op, and those around it from which it can wait for ops.

    None stands for the graph. An op in a loop waits for ops of that loop only.
    """
    context = _control_flow.GetOutputContext(op)
    contexts = [context]
    while context is not None and not type(context).__name__.startswith("While"):
        context = context.outer_context
        contexts.append(context)
    return contexts


def is_in_same_loop(op: Operation, other: Operation) -> bool:
    """Return True if an op of TensorFlow 1 is in the loop of another one, also in a branch or loop in it."""
    loop, context = other._get_control_flow_context(), op._get_control_flow_context()
    while context is not None and context is not loop:
        context = context.outer_context
    return loop is not None and context is loop


def add_control_inputs(op: Operation, others: Sequence[Operation]) -> None:
    """Let an op wait for others, before a session has it."""
    op._add_control_inputs(others)


def add_to_rehearsal_op_count(graph: Graph, number: int) -> None:
    """Count ops of a graph that it has in rehearsals only."""
    setattr(graph, _REHEARSAL_OPS, rehearsal_op_count(graph) + number)


def rehearsal_op_count(graph: Graph) -> int:
    """Return how many ops a graph has in rehearsals only."""
    return int(getattr(graph, _REHEARSAL_OPS, 0))


def script_op_count() -> int:
    """Return how many ops the default graph has, without those of rehearsals; 0 in eager mode."""
    graph = v1.get_default_graph()
    return 0 if tf.executing_eagerly() else int(graph.version) - rehearsal_op_count(graph)


def is_in_plain_graph() -> bool:
    """Return False in eager mode, and in the graph of a tf.function, whose gradients a tape computes."""
    return not tf.executing_eagerly() and not v1.get_default_graph().building_function


def is_outside_control_flow() -> bool:
    """Return True if a new op would be in no loop, branch or function."""
    return is_in_plain_graph() and v1.get_default_graph()._get_control_flow_context() is None


def control_flow_types_text(graph: Graph) -> str:
    """Return the types of the loops, "While...", and branches, "Cond...", around what is created in a graph now."""
    types = []
    while graph is not None:
        context = graph._get_control_flow_context()
        while context is not None:
            types.append(type(context).__name__)
            context = context.outer_context
        types.append(type(graph).__name__)
        graph = getattr(graph, "outer_graph", None)
    return " ".join(name for name in types if name.startswith(("While", "Cond")))


def outermost_session_graph(graph: Graph) -> Graph | None:
    """Return the graph of a session outside a graph of branches and functions; None for those of eager code."""
    while graph is not None and graph.building_function:
        graph = getattr(graph, "outer_graph", None)
    is_global = graph is _ops._default_graph_stack._global_default_graph
    return None if is_global and _context.default_execution_mode == _context.EAGER_MODE else graph


def is_eager_outermost() -> bool:
    """Return True in eager code, and in a function that it traces."""
    with tf.init_scope():
        return bool(tf.executing_eagerly())


def switch_branches(
    condition: Tensor,
    inputs: Sequence[Tensor],
    if_true: Callable[..., Structure],
    if_false: Callable[..., Structure],
) -> Structure:
    """Return if_true(*inputs) or if_false(*inputs) by a bool tensor; outside control flow only.

    It is tf.cond without its overhead of some microseconds: tf.cond makes each constant of a branch an op that runs,
    and copies the predicate. It has no gradient; see _tf_gradients.with_gradient.
    """
    sides = [tf.raw_ops.Switch(data=x, pred=condition) for x in inputs]
    for x, side in zip(inputs, sides):
        for y in side:
            y.set_shape(x.shape)
    results = if_false(*[side[0] for side in sides]), if_true(*[side[1] for side in sides])
    return tf.nest.map_structure(lambda *values: tf.raw_ops.Merge(inputs=values)[0], *results)


def smart_cond(pred: Tensor, true_fn: Callable[[], Structure], false_fn: Callable[[], Structure]) -> Structure:
    """Call one branch if pred is known when the graph is built, else add a tf.cond."""
    if isinstance(pred, tf.Variable):
        return v1.cond(tf.cast(pred, tf.bool), true_fn, false_fn)
    known = static_value(pred) if isinstance(pred, tf.Tensor) else pred
    if known is not None:
        return true_fn() if known else false_fn()
    return v1.cond(tf.cast(pred, tf.bool), true_fn, false_fn)


def register_variable_collection(name: str) -> None:
    """Let graphs be exported with a collection of variables, like the global ones. A second call has no effect."""
    if _ops.get_to_proto_function(name) is None:
        like = v1.GraphKeys.GLOBAL_VARIABLES
        _ops.register_proto_function(
            name,
            proto_type=_ops.get_collection_proto_type(like),
            to_proto=_ops.get_to_proto_function(like),
            from_proto=_ops.get_from_proto_function(like),
        )


def enter_current_graph() -> ContextManager[Graph]:
    """Return a context manager that enters the current graph once more; in eager code and functions it does nothing.

    In a branch on the global graph, ``tf.init_scope`` of TensorFlow 2.6 otherwise leaves graph mode. Then an optimizer
    creates its slots eagerly, and the graph cannot use them.
    """
    graph = v1.get_default_graph()
    if tf.executing_eagerly() or getattr(graph, "building_function", False):
        return contextlib.nullcontext()
    entered: ContextManager[Graph] = graph.as_default()
    return entered


def values_for_shapes(
    tensors: Sequence[Tensor], shapes: Mapping[str, Sequence[int]], run: Callable[..., Sequence[np.ndarray]]
) -> Sequence[np.ndarray] | None:
    """Return what tensors have if placeholders have these shapes; None if anything but shapes matters.

    Args:
        tensors: of one graph.
        shapes: by the names of the placeholders.
        run: session.run without hooks.
    """
    names = [tensor.op.name for tensor in tensors]
    graph_def = v1.graph_util.extract_sub_graph(tensors[0].graph.as_graph_def(), names)
    for node in graph_def.node:
        node.attr.pop("_output_shapes", None)
        if node.name in shapes:
            node.attr["shape"].shape.CopyFrom(tf.TensorShape(shapes[node.name]).as_proto())
    loops = _lower_loops_to_first_iteration({node.name: node for node in graph_def.node})
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    for node in graph_def.node:
        shape = graph.get_operation_by_name(node.name).inputs[0].shape if node.op == "Shape" else None
        if shape is not None and shape.is_fully_defined():
            node.CopyFrom(_constant_node(node.name, shape.as_list(), node.attr["out_type"].type or tf.int32))
    graph_def = v1.graph_util.extract_sub_graph(graph_def, names)
    for first, later in loops.items():
        both = [graph.get_tensor_by_name(f"{name}:0").shape for name in (first, later)]
        if not both[0].is_fully_defined() or both[0].as_list() != both[1].as_list():
            return None
    if any(node.name in loops for node in graph_def.node):
        return None  # a value that the loop changes is needed
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        fetches = tf.import_graph_def(graph_def, return_elements=[tensor.name for tensor in tensors], name="")
        try:
            return run(session, fetches)
        except tf.errors.OpError:  # a value that is not fed, or of a variable, is needed
            return None


def _lower_loops_to_first_iteration(nodes: Mapping[str, Message]) -> dict[str, str]:
    """Let nodes in loops of TensorFlow 1 compute what they do in the first iteration, without a loop.

    Returns:
        By the node with the first value of something that a loop changes, the one with the later values.
    """
    loops = {}
    for node in nodes.values():
        if node.op == "Merge" and nodes[node.input[1]].op == "NextIteration":
            loops[node.name] = node.input[1]
        if node.op == "Enter" or node.name in loops:
            node.CopyFrom(v1.NodeDef(name=node.name, op="Identity", input=node.input[:1], attr={"T": node.attr["T"]}))
    for node in nodes.values():
        if node.op == "TensorArrayReadV3":
            array = nodes[node.input[2].partition(":")[0]]
            while array.op == "Identity":
                array = nodes[array.input[0].partition(":")[0]]
            if array.op == "TensorArrayScatterV3":  # it reads a row of what unstack() was given
                attributes = {
                    "Tparams": node.attr["dtype"],
                    "Tindices": attr_value_pb2.AttrValue(type=tf.int32.as_datatype_enum),
                }
                node.CopyFrom(
                    v1.NodeDef(name=node.name, op="Gather", input=[array.input[2], node.input[1]], attr=attributes)
                )
    return loops


def _constant_node(name: str, value: Sequence[int], dtype: DType) -> Message:
    """Return the node of a constant."""
    node = v1.NodeDef(name=name, op="Const")
    node.attr["dtype"].type = tf.as_dtype(dtype).as_datatype_enum
    node.attr["value"].tensor.CopyFrom(v1.make_tensor_proto(value, tf.as_dtype(dtype)))
    return node


def original_op_of_gradient(op: Operation) -> Operation | None:
    """Return the operation whose gradient an operation is a part of; None for another operation."""
    return getattr(op, "_original_op", None)
