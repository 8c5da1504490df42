"""Compute the outputs of all ops of a function, or of a graph, in a session."""

from __future__ import annotations

from typing import Dict, Mapping, Sequence

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import tf_graph
from npu_shim._tensorflow.types import (
    FeedDict,
    Function,
    Gradient,
    Graph,
    Operation,
    Session,
    Structure,
    Tensor,
    Value,
    Variable,
)
from npu_shim.rehearsal.op_comparison.values import (
    INFERENCE,
    Fetch,
    Loss,
    OpValue,
    build_fetches,
    fetches_of,
)
from npu_shim.rehearsal.recording.names import plain_name

v1 = tf.compat.v1
Variables = Dict[str, np.ndarray]  # by name, in the order of the graph


def function_values(
    function: Function, arguments: Sequence[Structure], loss: Loss | None, rate: float, variables: Variables
) -> list[OpValue]:
    """Return the outputs of all ops of a function that builds a graph.

    Args:
        function: the function.
        arguments: its arguments, arrays or structures of arrays.
        loss: a function of its output; None to stop after inference.
        rate: the learning rate of the update.
        variables: the values that its variables take; an empty one receives the initial values.
    """
    graph = tf.Graph()
    with graph.as_default():
        flat = [np.asarray(array) for array in tf.nest.flatten(list(arguments))]
        fed = [v1.placeholder(array.dtype, array.shape) for array in flat]

        def compute() -> Structure:
            return function(*tf.nest.pack_sequence_as(list(arguments), fed))

        def differentiate(value: Tensor) -> tuple[Sequence[Variable], Sequence[Gradient]]:
            trained = v1.trainable_variables()
            return trained, v1.gradients(value, trained)

        fetches = build_fetches(graph, compute, loss, rate, differentiate)
    return _run_fetches(graph, fetches, dict(zip(fed, flat)), variables)


def dependent_values(graph: Graph, inputs: Mapping[Tensor, Value], variables: Variables) -> list[OpValue]:
    """Return the outputs of all ops of a graph that depend on some tensors.

    Args:
        graph: the graph. Nothing is trained in it.
        inputs: tensors, or their names, and values.
        variables: as for function_values.
    """
    fed = {graph.as_graph_element(key): value for key, value in inputs.items()}
    fed = {key.outputs[0] if isinstance(key, tf.Operation) else key: value for key, value in fed.items()}
    sources = {tensor.op for tensor in fed}
    below: set[Operation] = set(sources)
    ops = graph.get_operations()
    for op in ops:  # in the order of the graph, inputs first; loops of TensorFlow 1 are left out
        if any(tensor.op in below for tensor in op.inputs):
            below.add(op)
    chosen = [op for op in ops if op in below - sources and not _cannot_be_computed(op, sources)]
    return _run_fetches(graph, fetches_of(INFERENCE, chosen, graph), fed, variables)


def _cannot_be_computed(op: Operation, fed_ops: set[Operation]) -> bool:
    """Return True if an op needs a value that is not fed, or changes a state."""
    needed = tf_graph.reachable_nodes([op], tf_graph.input_ops)
    return any(other.type == "Placeholder" and other not in fed_ops or "Assign" in other.type for other in needed)


def _run_fetches(graph: Graph, fetches: list[Fetch], feed_dict: FeedDict, variables: Variables) -> list[OpValue]:
    with graph.as_default(), v1.Session(graph=graph) as session:
        all_variables = v1.global_variables()
        session.run(v1.variables_initializer(all_variables))
        session.run([variable.initializer for variable in v1.get_collection(v1.GraphKeys.LOCAL_VARIABLES)])
        if not variables:
            variables.update(zip(map(plain_name, all_variables), session.run(all_variables)))
        else:
            _load_variables(session, all_variables, variables)
        values = session.run([fetch.tensor for fetch in fetches], dict(feed_dict))
    return [OpValue(fetch.stage, fetch.name, fetch.op_type, np.asarray(value)) for fetch, value in zip(fetches, values)]


def _load_variables(session: Session, all_variables: Sequence[Variable], variables: Variables) -> None:
    """Give variables the values of those of the same name, or in the same order if the names differ.

    Raises:
        ValueError: if neither names nor shapes fit.
    """
    names = [plain_name(variable) for variable in all_variables]
    values = [variables[name] for name in names] if set(names) <= set(variables) else list(variables.values())
    shapes = [tuple(variable.shape.as_list()) for variable in all_variables]
    if shapes != [value.shape for value in values]:
        raise ValueError(
            f"the two have different variables: {dict(zip(variables, [v.shape for v in variables.values()]))} and "
            f"{dict(zip(names, shapes))}. Compare functions with the same variables, in the same order."
        )
    for variable, value in zip(all_variables, values):
        variable.load(value, session)
