"""Channels on which a graph sends tensors to the host while it runs.

On the NPU a channel leaves the device. On the CPU it is a queue in the graph
with unlimited capacity, so that no op blocks and no element is lost.
"""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow import tf_api, tf_graph
from npu_shim._tensorflow.types import DType, Operation, Queue, Tensor, TensorShape

tf = tf_api.tf
_CHANNELS = "npu_shim/outfeed_channels"  # a graph's collection of its queues
LOG_CHANNEL = "_npu_log"


def outfeed_enqueue_op(channel_name: str, inputs: Sequence[Tensor], name: str | None = None) -> Operation:
    """Enqueue tensors on a channel.

    Args:
        channel_name: name of the channel.
        inputs: a list of tensors of any shapes and types; one element of the channel.
        name: name of the op.
    Returns:
        The Operation that enqueues the element.
    Raises:
        ValueError: if the channel carries other types already.
    """
    tensors = [_copy_of_reference(tf.convert_to_tensor(tensor)) for tensor in inputs]
    return find_or_create_channel(channel_name, [tensor.dtype for tensor in tensors]).enqueue(tensors, name=name)


def outfeed_enqueue_operator(inputs: Sequence[Tensor], channel_name: str, name: str | None = None) -> Operation:
    """Enqueue tensors on a channel. Arguments and result as for outfeed_enqueue_op."""
    return outfeed_enqueue_op(channel_name, inputs, name)


def _copy_of_reference(tensor: Tensor) -> Tensor:
    """Copy the value of a reference variable: the queue would share its memory, which the next step changes."""
    return tf.raw_ops.DeepCopy(x=tensor) if tf_graph.is_variable_reference(tensor) else tensor


def outfeed_dequeue_op(
    channel_name: str, output_types: Sequence[DType], output_shapes: Sequence[TensorShape], name: str | None = None
) -> list[Tensor]:
    """Dequeue one element from a channel; blocks until there is one.

    Args:
        channel_name: name of the channel.
        output_types: types of its tensors.
        output_shapes: shapes of its tensors.
        name: name of the op.
    Returns:
        A list of tensors. At run time, if the channel is closed and empty:
        tf.errors.OutOfRangeError.
    Raises:
        ValueError: if the channel carries other types already.
    """
    element = find_or_create_channel(channel_name, output_types).dequeue(name=name)
    tensors = element if isinstance(element, (list, tuple)) else [element]
    for tensor, shape in zip(tensors, output_shapes):
        tensor.set_shape(shape)
    return list(tensors)


def stop_outfeed_dequeue_op(channel_name: str, name: str | None = None) -> Operation:
    """Close a channel: dequeuing gets what is there, then raises tf.errors.OutOfRangeError when it runs.

    Args:
        channel_name: name of the channel.
        name: name of the op.
    Returns:
        The Operation that closes the channel.
    Raises:
        ValueError: if the default graph has no such channel.
    """
    queue = find_channel(channel_name)
    if queue is None:
        raise ValueError(
            f"stop_outfeed_dequeue_op: the graph has no channel {channel_name!r}. Call outfeed_enqueue_op first."
        )
    return queue.close(name=name)


def find_or_create_channel(name: str, types: Sequence[DType]) -> Queue:
    """Return the queue of a channel in the default graph; create it if there is none.

    Raises:
        ValueError: if it carries other types.
    """
    dtypes = [tf.as_dtype(dtype) for dtype in types]
    queue = find_channel(name)
    if queue is None:
        with tf.control_dependencies(None):
            queue = tf_api.v1.FIFOQueue(-1, dtypes, shared_name="outfeed/" + name)
        tf_api.v1.add_to_collection(_CHANNELS, (name, queue))
    if queue.dtypes != dtypes:
        raise ValueError(
            f"channel {name!r} carries {[t.name for t in queue.dtypes]}, not {[t.name for t in dtypes]}: use "
            "the same types on both ends, or another channel."
        )
    return queue


def find_channel(name: str) -> Queue | None:
    """Return the queue of a channel in the default graph, or None if there is none."""
    return dict(tf_api.v1.get_collection(_CHANNELS)).get(name)
