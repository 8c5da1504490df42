"""Ops with kernels for GPUs only: those with a form, those that are refused, and a reason for each of the others."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.ops.cpu_kernels import others

v1 = tf.compat.v1
IS_1 = tf.__version__.startswith("1.")
pytestmark = pytest.mark.usefixtures("in_use")


def test_each_op_has_a_form_or_a_reason(repo_root: Path) -> None:
    docs = repo_root / "docs"
    spec = importlib.util.spec_from_file_location("make_kernels", str(docs / "make_kernels.py"))
    make_kernels = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_kernels)
    rows = make_kernels.rows()
    assert not [row.op for row in rows if not row.on_cpu]
    if not IS_1:  # the wheel of TensorFlow 1.15 has no kernels for GPUs
        assert {"CudnnRNNV3", "CTCLossV2", "NcclAllReduce"} <= {row.op for row in rows}
    if tf.__version__.startswith("2.6."):
        assert (docs / "kernels.md").read_text(encoding="utf-8") == make_kernels.page()


if not tf.__version__.startswith("2.6."):
    test_each_op_has_a_form_or_a_reason = pytest.mark.nightly(test_each_op_has_a_form_or_a_reason)


@pytest.mark.parametrize("op_type", others.LATER_NAMES)
def test_fourier_transforms(op_type: str) -> None:
    rank = int(op_type[-2]) if op_type.endswith("D") else 1
    value = np.random.RandomState(1).uniform(-1, 1, [2, 4, 4, 4]).astype(np.complex64)
    axes = tuple(range(-rank, 0))
    wanted = (np.fft.ifftn if "IFFT" in op_type else np.fft.fftn)(value, axes=axes)
    with tf.Graph().as_default(), v1.Session() as session:
        found = session.run(getattr(tf.raw_ops, op_type)(input=value))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_ctc_loss() -> None:
    if IS_1:
        assert not hasattr(tf.raw_ops, "CTCLossV2")
        return
    random = np.random.RandomState(1)
    values = random.uniform(-2, 2, [6, 2, 4]).astype(np.float32)
    labels = [[1, 3], [2, 2]]
    with tf.Graph().as_default(), v1.Session() as session:
        x = tf.constant(values)
        indices = [[0, 0], [0, 1], [1, 0], [1, 1]]
        tested = tf.raw_ops.CTCLossV2(
            inputs=x, labels_indices=indices, labels_values=[1, 3, 2, 2], sequence_length=[6, 5]
        )
        wanted = tf.nn.ctc_loss(labels, x, [2, 2], [6, 5], blank_index=0)
        slopes = [tf.gradients(each, x)[0] for each in (tested.loss, wanted)]
        found = session.run([tested.loss, wanted, *slopes, tested.gradient])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)
    np.testing.assert_allclose(found[2], found[3], atol=1e-5)
    np.testing.assert_allclose(found[4], found[3], atol=1e-5)


@pytest.mark.parametrize("by_batch", [False, True])
def test_second_gradient_of_a_pool_with_places(by_batch: bool) -> None:
    value = np.random.RandomState(1).permutation(2 * 4 * 4 * 3).reshape([2, 4, 4, 3]).astype(np.float32)
    given: dict[str, Any] = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    with tf.Graph().as_default(), v1.Session() as session:
        x = tf.constant(value)
        _, places = tf.raw_ops.MaxPoolWithArgmax(input=x, include_batch_in_index=by_batch, **given)
        tested = tf.raw_ops.MaxPoolGradGradWithArgmax(
            input=x, grad=x * x, argmax=places, include_batch_in_index=by_batch, **given
        )
        found = session.run(tested)
    np.testing.assert_array_equal(found, value.reshape([2, 2, 2, 2, 2, 3]).max((2, 4)) ** 2)


def test_refused() -> None:
    with tf.Graph().as_default(), pytest.raises(NotImplementedError, match="NcclAllReduce runs on GPUs only. Use one"):
        tf.raw_ops.NcclAllReduce(input=np.float32([1]), reduction="sum", num_devices=2, shared_name="x")
