"""Replacement of elements along one axis.

Source: the operator ScatterElements of the ONNX standard.
"""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor

_REDUCTIONS = {"none": tf.tensor_scatter_nd_update, "add": tf.tensor_scatter_nd_add}


def scatter_elements(data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, name: str | None = None) -> Tensor:
    """Return the data with y[..., indices[p], ...] = updates[p] for each place p; the index counts along the axis.

    The gradient of an element of the data is 0 where it was replaced; that of an update is the gradient of its place.

    Args:
        data: tensor of numbers.
        indices: int32 or int64, of the rank of the data and not larger; a negative index counts from the end.
        updates: of the shape of the indices and the type of the data.
        axis: int.
        name: name of the ops.
    Returns:
        A tensor with the shape and type of the data.
    """
    return scatter_elements_v2(data, indices, updates, axis, "None", name)


def scatter_elements_v2(
    data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, reduction: str = "None", name: str | None = None
) -> Tensor:
    """Return the data with elements replaced, or with the updates added. See scatter_elements.

    Args:
        reduction: "None" to replace, "add" to add.
        others: as for scatter_elements.
    Raises:
        ValueError: another reduction.
    """
    if reduction.lower() not in _REDUCTIONS:
        raise ValueError(f"scatter_elements_v2: reduction={reduction!r} is not supported. Use 'None' or 'add'.")
    data, indices = tf.convert_to_tensor(data), tf.convert_to_tensor(indices)
    with tf.name_scope(name or "scatter_elements"):
        rank = data.shape.rank
        axis += rank if axis < 0 else 0
        size = tf.shape(data, out_type=indices.dtype)[axis]
        places = tf.meshgrid(
            *[tf.range(n) for n in tf.unstack(tf.shape(indices, out_type=indices.dtype), rank)], indexing="ij"
        )
        places[axis] = tf.compat.v2.where(indices < 0, indices + size, indices)
        return _REDUCTIONS[reduction.lower()](data, tf.stack(places, -1), updates)
