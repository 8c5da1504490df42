"""Compute the outputs of all ops of a function or a model of TensorFlow 2, in one tf.function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

import numpy as np
import tensorflow as tf

from npu_shim.rehearsal.op_comparison.values import (
    Fetch,
    Loss,
    OpValue,
    all_fetches,
    by_variable_of,
    tensors_of,
)

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Function, Structure, Tensor, Value


def eager_values(function: Function, arguments: Sequence[Structure], loss: Loss | None, rate: float) -> list[OpValue]:
    """Return the outputs of all ops.

    Args:
        function: a function, a tf.function or a Keras model.
        arguments: its arguments, arrays or structures of arrays.
        loss: a function of its output; None to stop after inference.
        rate: the learning rate of the update.
    """
    called = function
    if hasattr(function, "python_function"):  # a tf.function would be one op
        called = tf.autograph.to_graph(function.python_function)
    fetches: list[Fetch] = []

    @tf.function(autograph=False)
    def all_values(*tensors: Structure) -> list[Tensor]:
        graph = tf.compat.v1.get_default_graph()
        marks = [len(graph.get_operations())]
        by_variable: dict[str, list[tuple[str, Value]]] = {}
        with tf.GradientTape() as tape:
            output = called(*tensors)
            marks.append(len(graph.get_operations()))
            value = None if loss is None else loss(output)
        outputs = tensors_of(output)
        if value is not None:
            marks.append(len(graph.get_operations()))
            outputs.append(value)
            variables = tape.watched_variables()
            gradients = tape.gradient(value, variables)
            marks.append(len(graph.get_operations()))
            by_variable = by_variable_of(variables, gradients, rate)
            marks.append(marks[-1])  # of the update, only the results
        fetches[:] = all_fetches(graph, marks, outputs, by_variable)
        return [fetch.tensor for fetch in fetches]

    values = all_values(*tf.nest.map_structure(tf.convert_to_tensor, list(arguments)))
    return [OpValue(fetch.stage, fetch.name, fetch.op_type, np.asarray(value)) for fetch, value in zip(fetches, values)]
