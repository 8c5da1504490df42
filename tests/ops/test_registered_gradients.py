"""The gradients that the vendor registers by operator type, against differences of the operator itself.

The vendor's Python packages register a gradient for each type of GRADIENTS. HcomAllReduce is compared on several ranks in
tests/distributed/test_collective_ops.py.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from npu_shim.hccl import hccl_ops

from npu_shim.estimator.npu_aicore_ops import npu_aicore_ops as operators
from tests.ops.operator_case import flat, made, random


class Gradient(NamedTuple):
    """An operator and its inputs, all of which have a gradient."""

    call: Callable[..., Any]
    inputs: tuple[Any, ...]


MASK = np.array([0b10110101, 0b01101011, *[0] * 14], np.uint8)  # a bit for each element
OFFSETS = random.uniform(0.1, 0.4, [1, 2, 2, 12]).astype(np.float32)
LENGTHS = np.array([3, 2], np.int32)
WEIGHTS = (made(2, 9) * 0.5, made(3, 9) * 0.5, made(9), made(9))
STATE = made(1, 2, 3)
CELL = (made(5, 12) * 0.5, made(12))
GRU = {"gate_order": "zrh"}

GRADIENTS = {
    "Gelu": Gradient(operators.gelu, (made(3, 4),)),
    "FastGelu": Gradient(operators.fast_gelu, (made(3, 4),)),
    "PRelu": Gradient(operators.p_relu, (made(2, 3), made(3))),
    "DropOutDoMask": Gradient(lambda x: operators.drop_out_do_mask(x, MASK, 0.7), (made(3, 4),)),
    "DropOutDoMaskV3": Gradient(
        lambda x: operators.drop_out_do_mask_v3(x, (made(3, 4) > 0).astype(np.uint8) * 0 + 1, 0.7), (made(3, 4),)
    ),
    "BasicLSTMCell": Gradient(
        lambda x, h, c, w, b: operators.basic_lstm_cell(x, h, c, w, b)[:2], (made(2, 2), made(2, 3), made(2, 3), *CELL)
    ),
    "DynamicGruV2": Gradient(
        lambda x, wx, wh, bx, bh, h: operators.dynamic_gru_v2(x, wx, wh, bx, bh, LENGTHS, h, **GRU)[0],
        (made(3, 2, 2), *WEIGHTS, STATE),
    ),
    "DynamicAUGRU": Gradient(
        lambda x, wx, wh, a, bx, bh, h: operators.dynamic_augru(x, wx, wh, a, bx, bh, LENGTHS, h, **GRU)[0],
        (made(3, 2, 2), *WEIGHTS[:2], np.abs(made(3, 2)) / 2, *WEIGHTS[2:], STATE),
    ),
    "DynamicRnn": Gradient(
        lambda x, w, b, h, c: operators.dynamic_rnn(x, w, b, LENGTHS, h, c)[0], (made(3, 2, 2), *CELL, STATE, STATE)
    ),
    "DynamicRnnV2": Gradient(
        lambda x, w, b, h, c: operators.dynamic_rnn_v2(x, w, b, h, c)[0], (made(3, 2, 2), *CELL, STATE, STATE)
    ),
    "FusedLayerNorm": Gradient(
        lambda x, gamma, beta: operators.fused_layer_norm(x, gamma, beta, 1, 1)[0], (made(3, 4), made(4), made(4))
    ),
    "DenseImageWarp": Gradient(
        operators.dense_image_warp, (made(1, 3, 4, 2), random.uniform(0.1, 0.4, [1, 3, 4, 2]).astype(np.float32))
    ),
    "DeformableOffsets": Gradient(
        lambda x, offsets: operators.deformable_offsets(
            x, offsets, strides=[1, 1, 1, 1], pads=[0, 0, 0, 0], ksize=[2, 2]
        ),
        (made(1, 3, 3, 2), OFFSETS),
    ),
    "HcomAllReduce": Gradient(lambda x: hccl_ops.allreduce(x, "sum"), (made(3, 4),)),
}


@pytest.mark.parametrize("operator", GRADIENTS)
def test_gradients_are_the_slopes_of_the_operator(operator: str) -> None:
    case, step = GRADIENTS[operator], 1e-2
    directions = [random.standard_normal(each.shape) for each in case.inputs]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        inputs = [tf.compat.v1.placeholder(tf.float32, each.shape) for each in case.inputs]
        results = flat(case.call(*inputs))
        weights = [np.cos(np.arange(np.prod(each.shape.as_list()))).reshape(each.shape.as_list()) for each in results]
        total = tf.add_n([tf.reduce_sum(each * weight.astype(np.float32)) for each, weight in zip(results, weights)])
        gradients = session.run(tf.gradients(total, inputs), dict(zip(inputs, case.inputs)))

        def loss(distance: float) -> float:
            moved = [value + distance * way for value, way in zip(case.inputs, directions)]
            found = session.run(results, dict(zip(inputs, moved)))
            return sum((each.astype(np.float64) * weight).sum() for each, weight in zip(found, weights))

        slope = (loss(step) - loss(-step)) / (2 * step)
    found = sum((gradient * way).sum() for gradient, way in zip(gradients, directions))
    assert found == pytest.approx(slope, rel=2e-2, abs=5e-3)
