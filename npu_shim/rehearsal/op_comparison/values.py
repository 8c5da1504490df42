"""The outputs of ops, stage by stage."""

from __future__ import annotations

from typing import Callable, Iterable, NamedTuple, Sequence

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import tf_graph, tf_recording
from npu_shim._tensorflow.types import Gradient, Graph, Operation, Structure, Tensor, Value, Variable
from npu_shim.rehearsal.recording.names import plain_name

INFERENCE, LOSS, GRADIENT, UPDATE = "inference", "loss", "gradient", "update"
STAGES = (INFERENCE, LOSS, GRADIENT, UPDATE)
Loss = Callable[[Structure], Tensor]  # a function of the output, which returns a scalar
_EFFECTS = ("Assign", "Apply", "Scatter", "Queue", "Iterator", "Save", "Restore")  # running them changes a state


class Fetch(NamedTuple):
    """A tensor to compute.

    Attributes:
        stage: one of STAGES.
        name: of its op, or of the variable for gradients and updates.
        op_type: type of its op.
        tensor: the tensor.
    """

    stage: str
    name: str
    op_type: str
    tensor: Tensor


class OpValue(NamedTuple):
    """The value of a fetch."""

    stage: str
    name: str
    op_type: str
    value: np.ndarray


def fetches_of(stage: str, ops: Iterable[Operation], graph: Graph) -> list[Fetch]:
    """Return the numeric outputs of ops that have no effect and are not inside the control flow of TensorFlow 1."""
    return [
        Fetch(stage, tensor.op.name + (f":{number}" if number else ""), op.type, tensor)
        for op in ops
        if not any(word in op.type for word in _EFFECTS) and tf_recording.is_reachable(op, graph)
        for number, tensor in enumerate(op.outputs)
        if tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool
    ]


def build_fetches(
    graph: Graph,
    compute: Callable[[], Structure],
    loss: Loss | None,
    rate: float,
    differentiate: Callable[[Tensor], tuple[Sequence[Variable], Sequence[Gradient]]],
) -> list[Fetch]:
    """Build a computation in a graph, stage by stage, and return its fetches.

    Args:
        graph: receives the ops.
        compute: returns the output.
        loss: a function of it; None to stop after inference.
        rate: the learning rate of the update.
        differentiate: returns the variables of the loss, and the gradient of each.
    """
    marks = [len(graph.get_operations())]
    by_variable: dict[str, list[tuple[str, Value]]] = {}
    output = compute()
    marks.append(len(graph.get_operations()))
    outputs = tensors_of(output)
    if loss is not None:
        outputs.append(loss(output))
        marks.append(len(graph.get_operations()))
        variables, gradients = differentiate(outputs[-1])
        marks.append(len(graph.get_operations()))
        by_variable = gradients_and_updates(variables, gradients, rate)
        marks.append(marks[-1])  # of the update, only the results
    return all_fetches(graph, marks, outputs, by_variable)


def all_fetches(
    graph: Graph, marks: Sequence[int], outputs: Sequence[Tensor], by_variable: dict[str, list[tuple[str, Tensor]]]
) -> list[Fetch]:
    """Return the fetches of a graph in the order of its stages.

    Args:
        graph: the graph.
        marks: number of ops in the graph before each stage that adds ops, and at the end.
        outputs: the last tensors of these stages.
        by_variable: for GRADIENT and UPDATE: name of each variable and its tensor.
    """
    ops = graph.get_operations()
    tensors = [*outputs, *(tensor for named in by_variable.values() for _, tensor in named)]
    needed = tf_graph.reachable_nodes([tensor.op for tensor in tensors], tf_graph.input_ops)
    fetches: list[Fetch] = []
    for stage, start, end in zip(STAGES, marks, marks[1:]):
        fetches += fetches_of(stage, [op for op in ops[start:end] if op in needed], graph)
        fetches += [Fetch(stage, f"variable {name}", "", tensor) for name, tensor in by_variable.get(stage, ())]
    return fetches


def gradients_and_updates(
    variables: Sequence[Variable], gradients: Sequence[Gradient], rate: float
) -> dict[str, list[tuple[str, Value]]]:
    """Return the gradient of each variable, and the variable after a step of gradient descent, by stage.

    Args:
        variables: variables of either kind.
        gradients: of each variable; None for one that the loss does not depend on.
        rate: of the step.
    """
    pairs = [(variable, tf.convert_to_tensor(g)) for variable, g in zip(variables, gradients) if g is not None]
    return {
        GRADIENT: [(plain_name(variable), gradient) for variable, gradient in pairs],
        UPDATE: [
            (plain_name(variable), variable - tf.cast(rate, gradient.dtype) * gradient) for variable, gradient in pairs
        ],
    }


def tensors_of(structure: Structure) -> list[Tensor]:
    """Return the tensors of a structure."""
    return [tensor for tensor in tf.nest.flatten(structure) if isinstance(tensor, tf.Tensor)]
