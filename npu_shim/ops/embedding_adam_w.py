"""Adam with decoupled weight decay for rows of an embedding table.

    m <- beta1 m + (1 - beta1) g
    v <- beta2 v + (1 - beta2) g^2
    row <- (1 - lr weight_decay) row - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)

Sources: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", arXiv:1711.05101; Reddi et al., "On the
Convergence of Adam and Beyond", arXiv:1904.09237; the operator ApplyAdamWV2 of CANN.
"""

from __future__ import annotations

import numpy as np

from npu_shim._tensorflow.tf_api import numpy_function, tf
from npu_shim._tensorflow.types import Operation, Tensor, Variable
from npu_shim.ops.embedding_tables import lock, table_of_handle
from npu_shim.ops.in_place import assign_and_read, check_variable, scatter_update


def embedding_hash_table_apply_adam_w(
    table_handle: Tensor, keys: Tensor, m: Variable, v: Variable, beta1_power: Variable, beta2_power: Variable,
    lr: Tensor, weight_decay: Tensor, beta1: Tensor, beta2: Tensor, epsilon: Tensor, grad: Tensor,
    max_grad_norm: Variable, embedding_dim: int, bucket_size: int, amsgrad: bool = False, maximize: bool = False,
    name: str | None = None,
) -> Operation | None:  # fmt: skip
    """Do one step for the rows of keys, in place. Keys without a row are left out.

    Args:
        table_handle: int64 scalar or [1].
        keys: int64 [n], each key once.
        m, v: float16 or float32 [bucket_size, embedding_dim], variables; row i is that of row i of the table. A
            table that was loaded has no free rows, so evict no key, or let another take its row, before it is saved.
        beta1_power, beta2_power: scalar or [1], variables: beta^(t - 1), which becomes beta^t.
        lr, weight_decay, beta1, beta2, epsilon: scalar or [1].
        grad: [n, embedding_dim], g.
        max_grad_norm: with amsgrad a variable like v, the largest v so far, which takes the place of v.
        embedding_dim: numbers of a row.
        bucket_size: the rows of m and v; it has no effect.
        amsgrad: use max_grad_norm.
        maximize: use -g in place of g.
        name: name of the ops.
    Returns:
        The op; None in eager code.
    Raises:
        TypeError: m, v, a power, or with amsgrad max_grad_norm, is not a variable.
    """
    operator = "embedding_hash_table_apply_adam_w"
    given = [("m", m), ("v", v), ("beta1_power", beta1_power), ("beta2_power", beta2_power)]
    for argument, variable in given + ([("max_grad_norm", max_grad_norm)] if amsgrad else []):
        check_variable(operator, argument, variable)

    def find(handle: np.ndarray, keys: np.ndarray) -> list[np.ndarray]:
        """Return which keys have a row, the rows' places and their values."""
        table = table_of_handle(np.ravel(handle)[0])
        with lock:
            known = np.array([key in table.places for key in keys.tolist()], bool)
            places = np.array([table.places[key] for key in keys[known].tolist()], np.int64)
            return [known, places, table.values[places]]

    def store(handle: np.ndarray, places: np.ndarray, rows: np.ndarray) -> None:
        with lock:
            table_of_handle(np.ravel(handle)[0]).values[places] = rows

    with tf.name_scope(name or operator):
        known, places, rows = numpy_function(find, [table_handle, keys], [tf.bool, tf.int64, tf.float32])
        for result, shape in ((known, [None]), (places, [None]), (rows, [None, embedding_dim])):
            result.set_shape(shape)
        rate, decay, b1, b2, eps = (_scalar(setting) for setting in (lr, weight_decay, beta1, beta2, epsilon))
        g = tf.cast(tf.boolean_mask(grad, known), tf.float32) * (-1.0 if maximize else 1.0)
        new_m = b1 * _rows_at_places(m, places) + (1 - b1) * g
        new_v = b2 * _rows_at_places(v, places) + (1 - b2) * tf.square(g)
        changes = [(m, new_m), (v, new_v)]
        if amsgrad:
            largest = tf.maximum(_rows_at_places(max_grad_norm, places), new_v)
            changes.append((max_grad_norm, largest))
        power1, power2 = (
            _scalar(
                assign_and_read(operator, argument, variable, variable.read_value() * tf.cast(beta, variable.dtype))
            )
            for argument, variable, beta in (("beta1_power", beta1_power, b1), ("beta2_power", beta2_power, b2))
        )
        step = new_m / (1 - power1) / (tf.sqrt((largest if amsgrad else new_v) / (1 - power2)) + eps)
        stored = numpy_function(store, [table_handle, places, rows * (1 - rate * decay) - rate * step], [])
        with tf.control_dependencies([value for _, value in changes]):
            done = [
                scatter_update(target, places, tf.cast(value, target.dtype.base_dtype)) for target, value in changes
            ]
        return tf.group(stored, *done)


def embedding_hashtable_apply_adam_w(
    table_handle: Tensor, keys: Tensor, m: Variable, v: Variable, beta1_power: Variable, beta2_power: Variable,
    lr: Tensor, weight_decay: Tensor, beta1: Tensor, beta2: Tensor, epsilon: Tensor, grad: Tensor,
    max_grad_norm: Variable, embedding_dim: int, bucket_size: int, amsgrad: bool, maximize: bool,
) -> Operation | None:  # fmt: skip
    """Do one step for the rows of keys, in place. Arguments and result as for embedding_hash_table_apply_adam_w."""
    return embedding_hash_table_apply_adam_w(
        table_handle, keys, m, v, beta1_power, beta2_power, lr, weight_decay, beta1, beta2, epsilon, grad,
        max_grad_norm, embedding_dim, bucket_size, amsgrad, maximize,
    )  # fmt: skip


def _scalar(value: Tensor) -> Tensor:
    return tf.cast(tf.reshape(value, []), tf.float32)


def _rows_at_places(variable: Variable, places: Tensor) -> Tensor:
    return tf.cast(tf.gather(variable.read_value(), places), tf.float32)
