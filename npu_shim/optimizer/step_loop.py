"""Several training steps in one run: a loop in the graph around a copy of the training step.

The NPU makes ``iterations_per_loop`` = N steps for one ``session.run`` and
returns the values of the last step. Here a loop in the graph makes the first
N - 1 steps, and the op itself makes the last one, whose values are fetched:

    session.run(StepLoop.op)         N - 1 steps, only the loop's own ops
    session.run([train_op, ...])     the last step, with all fetches

The loop holds a copy of everything that the training op needs: input from a
tf.data iterator, forward and backward pass, update. State that is shared by
name (variables, iterators, tables, queues) is not copied: the step and its copy
use the same. A placeholder keeps its fed value for all N steps.

A copied random op has its own generator: the same distribution, but other
numbers than step by step.
"""

from __future__ import annotations

from typing import Iterable

from npu_shim._tensorflow import tf_api, tf_graph
from npu_shim._tensorflow.types import DType, GraphDef, Operation, Tensor
from npu_shim.optimizer import loop_variables, single_thread

tf = tf_api.tf

_PLACEHOLDERS = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")
_LARGE_CONSTANT = 1 << 16  # bytes; copying a smaller one costs less than passing it into each step
_NAME = "npu_shim_loop"


class StepLoop:
    """A loop that repeats a training step; the variable iterations_per_loop holds the number of steps.

    The variable is ``npu_runconfig/iterations_per_loop`` and holds N - 1, as on
    the NPU; see loop_variables.Loader.

    Args:
        train_op: the Operation of one training step.

    Attributes:
        op: the Operation that makes N - 1 steps.
        limit: number of steps that op makes: the value of the variable, unless it is fed.
        in_one_thread: True if op must run in one thread; see single_thread.
        placeholders: names of the placeholders without a default that train_op reads.
    """

    def __init__(self, train_op: Operation) -> None:
        self._step = _step_ops(train_op)
        self.placeholders: list[str] = sorted(
            {
                op.inputs[index].op.name
                for op in self._step
                for index in range(len(op.inputs))
                if op.inputs[index].op.type in _PLACEHOLDERS[:2]
            }
        )
        self.in_one_thread = single_thread.suits_single_thread(self._step)
        self.op, self.limit = _create_loop_and_limit(train_op, self._step, self.in_one_thread)

    def can_feed(self, tensors: Iterable[Tensor]) -> bool:
        """Return True if feeding these tensors affects the loop. A tensor that the loop copies is not affected."""
        return not any(tensor.op in self._step for tensor in tensors)


def _is_shared_by_steps(op: Operation) -> bool:
    """Return True for ops that the step and its copy both use; their value is the same for all steps."""
    if op.type in _PLACEHOLDERS:
        return True
    if op.type == "Const":
        return not op.control_inputs and op.node_def.attr["value"].ByteSize() > _LARGE_CONSTANT
    # A resource with a shared name: a variable, iterator, table or queue.
    return (
        not op.inputs
        and len(op.outputs) == 1
        and "shared_name" in op.node_def.attr
        and (tf_graph.is_variable_reference(op.outputs[0]) or op.outputs[0].dtype == tf.resource)
    )


def _step_ops(train_op: Operation) -> frozenset[Operation]:
    """Return the ops that one step executes, except the shared ones."""
    ops: set[Operation] = set()
    stack = [train_op]
    while stack:
        op = stack.pop()
        if op in ops or _is_shared_by_steps(op):
            continue
        ops.add(op)
        stack += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
    return frozenset(ops)


def _create_loop_and_limit(
    train_op: Operation, copied: frozenset[Operation], in_one_thread: bool
) -> tuple[Operation, Tensor]:
    """Add ``for i in range(iterations_per_loop): train_op`` to the graph. Return the op of the loop and its limit.

    The nodes are written directly instead of traced through tf.while_loop for
    two reasons. Existing ops are repeated, with their own control flow. And the
    variables of TensorFlow 1.15 are references, which only loops of control
    flow v1 can hold.
    """
    graph = train_op.graph
    with graph.as_default(), graph.control_dependencies(None), graph.device(None):
        steps = loop_variables.create_or_get_var("iterations_per_loop")
    with graph.as_default(), graph.control_dependencies(None), graph.device(None), tf_api.v1.name_scope(_NAME):
        limit = tf.identity(steps.read_value(), name="limit")
        body = _Body(graph.unique_name("steps", mark_as_used=False), copied, in_one_thread)
        (done,) = tf.graph_util.import_graph_def(
            body.graph_def(train_op, limit), input_map=body.outside, return_elements=["done"], name="steps"
        )
    return done, limit


class _Body:
    """The nodes of a loop.

    Args:
        frame: name of the loop's frame.
        copied: the ops of its body.
        in_one_thread: True if the body reads its input in the calling thread.

    Attributes:
        outside: tensors that the nodes read from outside the loop, by the name used inside.
    """

    def __init__(self, frame: str, copied: frozenset[Operation], in_one_thread: bool) -> None:
        self.outside: dict[str, Tensor] = {}
        self._frame = frame
        self._copied = copied
        self._types = {"IteratorGetNext": "IteratorGetNextSync"} if in_one_thread else {}
        self._nodes = tf_api.GraphDef()
        self._entered: dict[str, str] = {}

    def graph_def(self, train_op: Operation, limit: Tensor) -> GraphDef:
        """Return the loop as a GraphDef; its node ``done`` runs after the last step."""
        add = self._add_node
        add("Const", "zero", dtype=tf.int64, value=0)
        add("Enter", "first", "zero", T=tf.int64, frame_name=self._frame, is_constant=False, parallel_iterations=1)
        add("Merge", "count", "first", "next", T=tf.int64, N=2)
        add("Less", "more", "count", self._enter_loop(limit), T=tf.int64)
        add("LoopCond", "condition", "more")
        add("Switch", "turn", "count", "condition", T=tf.int64)
        add("Identity", "step", "turn:1", T=tf.int64)
        add("Const", "one", "^step", dtype=tf.int64, value=1)
        # The next step starts after this one: NextIteration waits for the whole copy.
        add("AddV2", "following", "step", "one", "^body/" + train_op.name, T=tf.int64)
        add("NextIteration", "next", "following", T=tf.int64)
        add("Exit", "end", "turn", T=tf.int64)
        add("NoOp", "done", "^end")
        for op in self._copied:
            self._copy_op(op)
        return self._nodes

    def _copy_op(self, op: Operation) -> None:
        node = self._nodes.node.add()
        node.CopyFrom(op.node_def)
        node.name = "body/" + op.name
        node.op = self._types.get(op.type, op.type)
        node.attr.pop("_class", None)  # colocation with ops outside the loop, which import_graph_def does not know
        if op.type in ("Enter", "RefEnter"):
            node.attr["frame_name"].s = tf.compat.as_bytes(self._frame + "/") + node.attr["frame_name"].s
        before = [other for other in op.control_inputs if other in self._copied]
        inside = bool(before) or any(tensor.op in self._copied for tensor in op.inputs)
        del node.input[:]
        node.input.extend(self._input_in_loop(tensor) for tensor in op.inputs)
        node.input.extend("^body/" + other.name for other in before)
        if not inside:  # loop inputs also arrive in the last iteration, which makes no step
            node.input.append("^step")

    def _input_in_loop(self, tensor: Tensor) -> str:
        return "body/" + tensor.name if tensor.op in self._copied else self._enter_loop(tensor)

    def _enter_loop(self, tensor: Tensor) -> str:
        """Return the name inside the loop of a tensor from outside."""
        if tensor.name not in self._entered:
            name = f"enter_{len(self._entered)}"
            source = f"outside_{len(self._entered)}"
            self._entered[tensor.name] = name
            self.outside[source + ":0"] = tensor
            self._add_node(
                "RefEnter" if tf_graph.is_variable_reference(tensor) else "Enter",
                name,
                source,
                T=tensor.dtype.base_dtype,
                frame_name=self._frame,
                is_constant=True,
                parallel_iterations=1,
            )
        return self._entered[tensor.name]

    def _add_node(self, op: str, name: str, *inputs: str, **attrs: bool | int | str | DType) -> None:
        node = self._nodes.node.add(op=op, name=name, input=inputs)
        for key, value in attrs.items():
            if isinstance(value, tf.DType):
                node.attr[key].type = value.as_datatype_enum
            elif key == "value":
                node.attr[key].tensor.CopyFrom(tf_api.v1.make_tensor_proto(value, attrs["dtype"]))
            else:
                node.attr[key].CopyFrom(tf_graph.attr_value(value))
