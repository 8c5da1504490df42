"""Compute the outputs of all ops of a function or a model of TensorFlow 2, in one tf.function."""

from __future__ import annotations

from typing import Sequence

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow.types import Function, Gradient, Structure, Tensor, Variable
from npu_shim.rehearsal.op_comparison.values import Fetch, Loss, OpValue, build_fetches


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
        with tf.GradientTape() as tape:

            def differentiate(value: Tensor) -> tuple[Sequence[Variable], Sequence[Gradient]]:
                variables = tape.watched_variables()
                return variables, tape.gradient(value, variables)

            graph = tf.compat.v1.get_default_graph()
            fetches[:] = build_fetches(graph, lambda: called(*tensors), loss, rate, differentiate)
        return [fetch.tensor for fetch in fetches]

    values = all_values(*tf.nest.map_structure(tf.convert_to_tensor, list(arguments)))
    return [OpValue(fetch.stage, fetch.name, fetch.op_type, np.asarray(value)) for fetch, value in zip(fetches, values)]
