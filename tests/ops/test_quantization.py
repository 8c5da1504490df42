"""Simulated quantization against NumPy, in graphs, functions, loops and eager code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.estimator.npu_aicore_ops import npu_aicore_ops as operators
from tests.ops.operator_case import Case, check_values, in_graph, made

pytestmark = pytest.mark.twice

X = np.array([[-9.0, -0.3, 0.3], [0.25, 1.4, 30.0]], np.float32)


def quantized(x: Any, lowest: int, highest: int) -> Any:
    return np.clip(np.round(x * 10) + 3, lowest, highest) - 3


def scales(values: Any, shifts: Any) -> Any:
    """Return scales of ascend_dequant: the bits of a float32 below those of a shift."""
    return np.array(values, np.float32).view(np.uint32).astype(np.uint64) | (np.array(shifts, np.uint64) << 32)


ACCUMULATED = np.array([[[[-70000.0, 5.0]], [[1000000.0, -7.0]]]], np.float32)  # [1, 2, 1, 2]


def dequantized(x: Any, axis: int) -> Any:
    """Return numbers with the scale 0.5 for one channel, and 0.25 with a shift by 4 bits for the other."""
    first, second = np.moveaxis(x, axis, 0)
    shifted = np.clip(np.floor(second * 6 / 16), -(2**15), 2**15 - 1) * 16 / 6
    return np.moveaxis(np.stack([first * 0.5, shifted * 0.25]), 0, axis)


CASES = {
    "ascend_quant": Case(lambda x: operators.ascend_quant(x, 10.0, 3.0), (X,), lambda x: quantized(x, -128, 127), ()),
    "ascend_quant, 4 bits": Case(
        lambda x: operators.ascend_quant(x, 10.0, 3.0, "INT4"), (X,), lambda x: quantized(x, -8, 7), ()
    ),
    "ascend_anti_quant": Case(
        lambda x: operators.ascend_anti_quant(x, 0.1, 3.0), (made(2, 3),), lambda x: 0.1 * x, (0,)
    ),
    "ascend_dequant": Case(
        lambda x: operators.ascend_dequant(x, scales([0.5], [0]), [1, 1]), (ACCUMULATED,), lambda x: 0.5 * x, ()
    ),
    "ascend_dequant, channels last": Case(
        lambda x: operators.ascend_dequant(x, scales([0.5, 0.25], [0, 4]), [2, 3]),
        (ACCUMULATED,),
        lambda x: dequantized(x, 3),
        (),
    ),
    "ascend_dequant, channels first": Case(
        lambda x: operators.ascend_dequant(x, scales([0.5, 0.25], [0, 4]), [2, 3], "NCHW"),
        (ACCUMULATED,),
        lambda x: dequantized(x, 1),
        (),
    ),
}


@pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))
def test_values_in_graphs_functions_loops_and_eager_code(case: Case) -> None:
    check_values(case)


def test_weights_lose_their_offset() -> None:
    weights = np.array([[1, -5], [120, 7]], np.int8)
    found = in_graph(lambda: operators.ascend_weight_quant(weights, np.array([[2, -3]], np.int8), tf.float32))
    assert found.dtype == np.float32 and found.tolist() == [[-1, -2], [118, 10]]


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="ascend_quant: dst_type='INT2' is not allowed"):
        operators.ascend_quant(X, 1.0, 0.0, "INT2")
    with pytest.raises(ValueError, match="ascend_dequant: data_format='ND' is not allowed"):
        operators.ascend_dequant(X, scales([1.0], [0]), [1, 1], "ND")
