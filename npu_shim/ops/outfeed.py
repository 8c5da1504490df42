"""Channels on which a graph hands tensors to the host while it runs.

On the card a channel leaves the device; on the CPU it is a queue in the graph
that holds any number of elements, so that nothing waits and nothing is lost.
"""

from __future__ import annotations

from typing import Any, Sequence

from npu_shim import _device, _tf, _tf_graph

tf = _tf.tf
_CHANNELS = "npu_shim/outfeed_channels"  # a graph's collection of its queues
LOG_CHANNEL = "_npu_log"


def outfeed_enqueue_op(channel_name: str, inputs: Sequence[Any], name: Any = None) -> Any:
    """Puts tensors on a channel.

    Args:
        channel_name: of the channel.
        inputs: a list of tensors of any shapes; one element of the channel.
        name: of the op.
    Returns:
        The Operation that does so when it runs.
    Raises:
        ValueError: the channel carries other types already.
    """
    if _device.device().is_npu:
        return _device.vendor("npu_bridge.estimator.npu_ops").outfeed_enqueue_op(channel_name, inputs, name)
    tensors = [_value(tf.convert_to_tensor(one)) for one in inputs]
    return channel(channel_name, [one.dtype for one in tensors]).enqueue(tensors, name=name)


def _value(tensor: Any) -> Any:
    """What a reference variable holds now: the queue would keep its memory, which the next step changes."""
    return tf.raw_ops.DeepCopy(x=tensor) if _tf_graph.is_reference(tensor) else tensor


def outfeed_dequeue_op(
    channel_name: str, output_types: Sequence[Any], output_shapes: Sequence[Any], name: Any = None
) -> list[Any]:
    """Takes one element from a channel; waits until there is one.

    Args:
        channel_name: of the channel.
        output_types: the types of its tensors.
        output_shapes: their shapes.
        name: of the op.
    Returns:
        A list of tensors. When they run and the channel is closed and empty:
        tf.errors.OutOfRangeError.
    Raises:
        ValueError: the channel carries other types already.
    """
    if _device.device().is_npu:
        return _device.vendor("npu_bridge.estimator.npu_ops").outfeed_dequeue_op(
            channel_name, output_types, output_shapes, name
        )
    taken = channel(channel_name, output_types).dequeue(name=name)
    tensors = taken if isinstance(taken, (list, tuple)) else [taken]
    for tensor, shape in zip(tensors, output_shapes):
        tensor.set_shape(shape)
    return list(tensors)


def channel(name: str, types: Sequence[Any]) -> Any:
    """The queue of a channel in the default graph, made where there is none.

    Raises:
        ValueError: it carries other types.
    """
    wanted = [tf.as_dtype(one) for one in types]
    found = existing_channel(name)
    if found is None:
        with tf.control_dependencies(None):
            found = _tf.v1.FIFOQueue(-1, wanted, shared_name="outfeed/" + name)
        _tf.v1.add_to_collection(_CHANNELS, (name, found))
    if found.dtypes != wanted:
        raise ValueError(
            f"channel {name!r} carries {[t.name for t in found.dtypes]}, not {[t.name for t in wanted]}: use "
            "the same types on both ends, or another channel."
        )
    return found


def existing_channel(name: str) -> Any:
    """The queue of a channel in the default graph, None where there is none."""
    return dict(_tf.v1.get_collection(_CHANNELS)).get(name)
