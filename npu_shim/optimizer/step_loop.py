"""Several training steps in one run, inside the graph: a loop around a copy of the training step.

The card makes ``iterations_per_loop`` = N steps for one ``session.run`` and
returns the values of the last. Here a loop in the graph makes the first N - 1,
and the op itself the last, whose values any fetch of the same run sees:

    session.run(StepLoop.op)         N - 1 steps, nothing but the loop's own ops
    session.run([train_op, ...])     the last step, with all that is fetched

The loop holds a copy of everything the training op needs: input from a
tf.data iterator, forward and backward pass, update. What has a state that is
shared by name (variables, iterators, tables, queues) is not copied but used by
both, and a placeholder keeps the value it is fed for all N steps.

A copied random op draws from a generator of its own: the same distribution,
but other numbers than step by step.
"""

from __future__ import annotations

from typing import Any, Iterable

from npu_shim import _tf, _tf_graph
from npu_shim.optimizer import loop_variables, single_thread

tf = _tf.tf

_PLACEHOLDERS = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")
_LARGE_CONSTANT = 1 << 16  # bytes; a copy of a smaller one costs less than carrying it into each step
_NAME = "npu_shim_loop"


class StepLoop:
    """A loop that repeats a training step as often as the variable iterations_per_loop says.

    The variable is ``npu_runconfig/iterations_per_loop`` and holds N - 1, as on
    the card; see loop_variables.load_ops.

    Args:
        train_op: the Operation of one training step.

    Attributes:
        op: the Operation that makes N - 1 steps.
        limit: how many steps op makes: what the variable says, unless it is fed.
        is_light: whether op has to run as light_steps says.
        placeholders: names of the placeholders that train_op reads and that have no default.
    """

    def __init__(self, train_op: Any) -> None:
        self._step = _needed_for(train_op)
        self.placeholders: list[str] = sorted(
            {
                op.inputs[index].op.name
                for op in self._step
                for index in range(len(op.inputs))
                if op.inputs[index].op.type in _PLACEHOLDERS[:2]
            }
        )
        self.is_light = single_thread.is_light(self._step)
        self.op, self.limit = _loop(train_op, self._step, self.is_light)

    def can_feed(self, fed: Iterable[Any]) -> bool:
        """Whether the loop sees these fed tensors: those that it copied keep their own value in it."""
        return not any(tensor.op in self._step for tensor in fed)


def _is_shared(op: Any) -> bool:
    """True for ops that both the step and its copy use: what they hold or are fed is the same for all steps."""
    if op.type in _PLACEHOLDERS:
        return True
    if op.type == "Const":
        return not op.control_inputs and op.node_def.attr["value"].ByteSize() > _LARGE_CONSTANT
    # A resource found by its own name, as variables, iterators, tables and queues are.
    return (
        not op.inputs
        and len(op.outputs) == 1
        and "shared_name" in op.node_def.attr
        and (_tf_graph.is_reference(op.outputs[0]) or op.outputs[0].dtype == tf.resource)
    )


def _needed_for(train_op: Any) -> frozenset[Any]:
    """The ops that one step executes, except the shared ones."""
    found: set[Any] = set()
    waiting = [train_op]
    while waiting:
        op = waiting.pop()
        if op in found or _is_shared(op):
            continue
        found.add(op)
        waiting += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
    return frozenset(found)


def _loop(train_op: Any, copied: frozenset[Any], is_light: bool) -> tuple[Any, Any]:
    """Adds ``for i in range(iterations_per_loop): train_op`` to the graph, with the copied ops as its body; and its limit.

    The nodes are written as such, and not traced through tf.while_loop,
    because ops that exist already have to be repeated, control flow of their
    own included, and because TF 1.15's variables are references, which only
    the loops of control flow v1 can hold.
    """
    graph = train_op.graph
    with graph.as_default(), graph.control_dependencies(None), graph.device(None):
        steps = loop_variables.create_or_get_var("iterations_per_loop")
    with graph.as_default(), graph.control_dependencies(None), graph.device(None), _tf.v1.name_scope(_NAME):
        limit = tf.identity(steps.read_value(), name="limit")
        body = _Body(graph.unique_name("steps", mark_as_used=False), copied, is_light)
        (done,) = tf.graph_util.import_graph_def(
            body.graph_def(train_op, limit), input_map=body.outside, return_elements=["done"], name="steps"
        )
    return done, limit


class _Body:
    """The nodes of a loop.

    Args:
        frame: name of the loop's frame.
        copied: the ops of its body.
        is_light: whether the body reads its input without a change of threads.

    Attributes:
        outside: what the nodes read from outside, by the name they use for it.
    """

    def __init__(self, frame: str, copied: frozenset[Any], is_light: bool) -> None:
        self.outside: dict[str, Any] = {}
        self._frame = frame
        self._copied = copied
        self._types = {"IteratorGetNext": "IteratorGetNextSync"} if is_light else {}
        self._nodes = _tf.GraphDef()
        self._entered: dict[str, str] = {}

    def graph_def(self, train_op: Any, limit: Any) -> Any:
        """The loop as a graph; its node ``done`` is reached when the last step is."""
        add = self._add
        add("Const", "zero", dtype=tf.int64, value=0)
        add("Enter", "first", "zero", T=tf.int64, frame_name=self._frame, is_constant=False, parallel_iterations=1)
        add("Merge", "count", "first", "next", T=tf.int64, N=2)
        add("Less", "more", "count", self._enter(limit), T=tf.int64)
        add("LoopCond", "condition", "more")
        add("Switch", "turn", "count", "condition", T=tf.int64)
        add("Identity", "step", "turn:1", T=tf.int64)
        add("Const", "one", "^step", dtype=tf.int64, value=1)
        # The next step starts when this one is through: NextIteration waits for the whole copy.
        add("AddV2", "following", "step", "one", "^body/" + train_op.name, T=tf.int64)
        add("NextIteration", "next", "following", T=tf.int64)
        add("Exit", "end", "turn", T=tf.int64)
        add("NoOp", "done", "^end")
        for op in self._copied:
            self._copy(op)
        return self._nodes

    def _copy(self, op: Any) -> None:
        node = self._nodes.node.add()
        node.CopyFrom(op.node_def)
        node.name = "body/" + op.name
        node.op = self._types.get(op.type, op.type)
        node.attr.pop("_class", None)  # places with ops outside the loop, which import_graph_def does not know
        if op.type in ("Enter", "RefEnter"):
            node.attr["frame_name"].s = tf.compat.as_bytes(self._frame + "/") + node.attr["frame_name"].s
        before = [other for other in op.control_inputs if other in self._copied]
        inside = bool(before) or any(tensor.op in self._copied for tensor in op.inputs)
        del node.input[:]
        node.input.extend(self._input(tensor) for tensor in op.inputs)
        node.input.extend("^body/" + other.name for other in before)
        if not inside:  # what enters the loop is there in its last turn too, in which no step is made
            node.input.append("^step")

    def _input(self, tensor: Any) -> str:
        return "body/" + tensor.name if tensor.op in self._copied else self._enter(tensor)

    def _enter(self, tensor: Any) -> str:
        """The name, inside the loop, of a tensor from outside."""
        if tensor.name not in self._entered:
            name = "enter_%d" % len(self._entered)
            source = "outside_%d" % len(self._entered)
            self._entered[tensor.name] = name
            self.outside[source + ":0"] = tensor
            self._add(
                "RefEnter" if _tf_graph.is_reference(tensor) else "Enter",
                name,
                source,
                T=tensor.dtype.base_dtype,
                frame_name=self._frame,
                is_constant=True,
                parallel_iterations=1,
            )
        return self._entered[tensor.name]

    def _add(self, op: str, name: str, *inputs: str, **attrs: Any) -> None:
        node = self._nodes.node.add(op=op, name=name, input=inputs)
        for key, value in attrs.items():
            if isinstance(value, tf.DType):
                node.attr[key].type = value.as_datatype_enum
            elif key == "value":
                node.attr[key].tensor.CopyFrom(_tf.v1.make_tensor_proto(value, attrs["dtype"]))
            else:
                node.attr[key].CopyFrom(_tf_graph.attr_value(value))
