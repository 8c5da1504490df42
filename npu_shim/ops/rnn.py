"""Recurrent networks over a static number of steps."""

from __future__ import annotations

from typing import Any

from npu_shim import _tf

tf = _tf.tf


def npu_dynamic_rnn(
    cell: Any,
    inputs: Any,
    initial_state: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any | None = None,
) -> tuple[Any, Any]:
    """Runs an RNN cell over time, unrolled, as the NPU needs it; the same on the card and on the CPU.

    Args:
        cell: an RNN cell of tf.compat.v1.nn.rnn_cell.
        inputs: tensor [T, B, ...] with a static T: time comes first.
        initial_state: the cell's first state; zeros of dtype when None.
        dtype: of that state; needed when initial_state is None.
        sequence_length: int vector [B]; after its length a row's outputs are zero and its state stands still.
        scope: variable scope.
    Returns:
        (outputs [T, B, H], final state).
    Raises:
        ValueError: T is not static.
    """
    inputs = tf.convert_to_tensor(inputs)
    if tf.compat.dimension_value(inputs.shape[0]) is None:
        raise ValueError(
            f"npu_dynamic_rnn: inputs has shape {inputs.shape}, but its first dimension, time, must be static: "
            "pad the batches to one length, and give sequence_length."
        )
    outputs, state = _tf.v1.nn.static_rnn(
        cell,
        tf.unstack(inputs, axis=0),
        initial_state=initial_state,
        dtype=dtype,
        sequence_length=sequence_length,
        scope=scope,
    )
    return tf.stack(outputs, axis=0), state
