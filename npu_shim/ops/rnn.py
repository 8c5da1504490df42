"""Recurrent networks over a static number of time steps."""

from __future__ import annotations

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import DType, RNNCell, Structure, Tensor, VariableScope

tf = tf_api.tf


def npu_dynamic_rnn(
    cell: RNNCell,
    inputs: Tensor,
    initial_state: Structure | None = None,
    dtype: DType | None = None,
    sequence_length: Tensor | None = None,
    scope: VariableScope | None = None,
) -> tuple[Tensor, Structure]:
    """Run an RNN cell over time, unrolled, as the NPU needs it.

    The result is the same on the NPU and the CPU: that of
    tf.compat.v1.nn.static_rnn.

    Args:
        cell: an RNN cell of tf.compat.v1.nn.rnn_cell.
        inputs: tensor [T, B, ...] with a static T; time comes first.
        initial_state: first state of the cell; zeros of dtype if None.
        dtype: type of the initial state; required if initial_state is None.
        sequence_length: int vector [B]. After its length, the outputs of a row are zero and its state is constant.
        scope: variable scope.
    Returns:
        (outputs [T, B, H], final state).
    Raises:
        ValueError: if T is not static.
    """
    inputs = tf.convert_to_tensor(inputs)
    if tf.compat.dimension_value(inputs.shape[0]) is None:
        raise ValueError(
            f"npu_dynamic_rnn: inputs has shape {inputs.shape}, but its first dimension, time, must be static: "
            "pad the batches to one length, and give sequence_length."
        )
    outputs, state = tf_api.v1.nn.static_rnn(
        cell,
        tf.unstack(inputs, axis=0),
        initial_state=initial_state,
        dtype=dtype,
        sequence_length=sequence_length,
        scope=scope,
    )
    return tf.stack(outputs, axis=0), state
