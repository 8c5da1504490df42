"""The NPU's operators for optimizers: Adam and LAMB, in TensorFlow's ops.

Sources: Kingma and Ba, "Adam", arXiv:1412.6980; You et al., "Large Batch Optimization for Deep Learning",
arXiv:1904.00962.
"""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Operation, Tensor, Variable
from npu_shim.ops.in_place import assign_and_read


def adam_apply_one_assign(
    input0: Tensor, input1: Variable, input2: Variable, input3: Variable, input4: Tensor, mul0_x: Tensor,
    mul1_x: Tensor, mul2_x: Tensor, mul3_x: Tensor, add2_y: Tensor, name: str | None = None,
) -> Operation | None:  # fmt: skip
    """Do one step of Adam without bias correction, in place.

        m <- mul0_x m + mul1_x g
        v <- mul2_x v + mul3_x g^2
        w <- w - rate m / (sqrt(v) + add2_y)

    Args:
        input0: the gradient g.
        input1: the variable v.
        input2: the variable m.
        input3: the variable w.
        input4: the learning rate.
        mul0_x, mul1_x, mul2_x, mul3_x: beta1, 1 - beta1, beta2, 1 - beta2.
        add2_y: epsilon.
        name: name of the ops.
    Returns:
        The op; None in eager code.
    Raises:
        TypeError: input1, input2 or input3 is not a variable.
    """
    inputs, factors = (input0, input1, input2, input3, input4), (mul0_x, mul1_x, mul2_x, mul3_x, add2_y)
    return _apply_adam("adam_apply_one_assign", name, *inputs, factors, None)


def adam_apply_one_with_decay_assign(
    input0: Tensor, input1: Variable, input2: Variable, input3: Variable, input4: Tensor, mul0_x: Tensor,
    mul1_x: Tensor, mul2_x: Tensor, mul3_x: Tensor, mul4_x: Tensor, add2_y: Tensor, name: str | None = None,
) -> Operation | None:  # fmt: skip
    """Do one step of Adam with decoupled weight decay, in place: w <- w - rate (m / (sqrt(v) + add2_y) + mul4_x w).

    Args:
        mul4_x: the weight decay.
        others: as for adam_apply_one_assign.
    Returns:
        The op; None in eager code.
    Raises:
        TypeError: input1, input2 or input3 is not a variable.
    """
    inputs, factors = (input0, input1, input2, input3, input4), (mul0_x, mul1_x, mul2_x, mul3_x, add2_y)
    return _apply_adam("adam_apply_one_with_decay_assign", name, *inputs, factors, mul4_x)


def lamb_apply_optimizer_assign(
    input0: Tensor, input1: Variable, input2: Variable, input3: Variable, mul0_x: Tensor, mul1_x: Tensor,
    mul2_x: Tensor, mul3_x: Tensor, add2_y: Tensor, steps: Tensor, do_use_weight: Tensor, weight_decay_rate: Tensor,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Update the moments of LAMB in place, and return the update before its scaling.

        m <- mul0_x m + mul1_x g
        v <- mul2_x v + mul3_x g^2
        update = m / (1 - mul0_x^steps) / (sqrt(v / (1 - mul2_x^steps)) + add2_y) + do_use_weight weight_decay_rate w

    Args:
        input0: the gradient g.
        input1: the variable v.
        input2: the variable m.
        input3: the variable or tensor w.
        mul0_x, mul1_x, mul2_x, mul3_x: beta1, 1 - beta1, beta2, 1 - beta2.
        add2_y: epsilon.
        steps: the number of this step, from 1.
        do_use_weight: 1 with weight decay, 0 without.
        weight_decay_rate: the weight decay.
        name: name of the ops.
    Returns:
        update, and the new v and m.
    Raises:
        TypeError: input1 or input2 is not a variable.
    """
    with tf.name_scope(name or "lamb_apply_optimizer_assign"):
        gradient = tf.convert_to_tensor(input0)
        v = assign_and_read(
            "lamb_apply_optimizer_assign", "input1", input1, mul2_x * input1 + mul3_x * tf.square(gradient)
        )
        m = assign_and_read("lamb_apply_optimizer_assign", "input2", input2, mul0_x * input2 + mul1_x * gradient)
        unbiased_m, unbiased_v = m / (1 - tf.pow(mul0_x, steps)), v / (1 - tf.pow(mul2_x, steps))
        update = unbiased_m / (tf.sqrt(unbiased_v) + add2_y) + do_use_weight * weight_decay_rate * input3
        return update, v, m


def lamb_apply_weight_assign(
    input0: Tensor, input1: Tensor, input2: Tensor, input3: Tensor, input4: Variable, name: str | None = None
) -> Tensor:
    """Apply an update of LAMB in place: w <- w - rate |w| / |update| update. The quotient is 1 if a norm is 0.

    Args:
        input0: |w|.
        input1: |update|.
        input2: the learning rate.
        input3: the update.
        input4: the variable w.
        name: name of the ops.
    Returns:
        The new w.
    Raises:
        TypeError: input4 is not a variable.
    """
    with tf.name_scope(name or "lamb_apply_weight_assign"):
        w_norm, u_norm = tf.convert_to_tensor(input0), tf.convert_to_tensor(input1)
        both = tf.logical_and(w_norm > 0, u_norm > 0)
        ratio = _where(both, w_norm / _where(both, u_norm, tf.ones_like(u_norm)), tf.ones_like(w_norm))
        return assign_and_read("lamb_apply_weight_assign", "input4", input4, input4 - ratio * input2 * input3)


_where = tf.compat.v2.where  # tf.where of TensorFlow 1 logs a deprecation


def _apply_adam(
    op: str, name: str | None, gradient: Tensor, v: Variable, m: Variable, w: Variable, rate: Tensor,
    factors: tuple[Tensor, ...], decay: Tensor | None,
) -> Operation | None:  # fmt: skip
    beta1, rest1, beta2, rest2, epsilon = factors
    with tf.name_scope(name or op):
        new_v = assign_and_read(op, "input1", v, beta2 * v + rest2 * tf.square(gradient))
        new_m = assign_and_read(op, "input2", m, beta1 * m + rest1 * gradient)
        update = new_m / (tf.sqrt(new_v) + epsilon)
        if decay is not None:
            update += decay * w
        new_w = assign_and_read(op, "input3", w, w - rate * update)
        return tf.group(new_v, new_m, new_w)
