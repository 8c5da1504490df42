"""Queues of batches, numbers of features, and the operators that start and stop the NPU."""

from __future__ import annotations

import pathlib
import threading
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from npu_shim.npu_cpu import npu_cpu_ops

from npu_shim.estimator import npu_ops
from npu_shim.estimator.npu_aicore_ops import npu_aicore_ops as operators

pytestmark = pytest.mark.twice


def test_batches_go_through_a_queue() -> None:
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        put = npu_cpu_ops.batch_enqueue(x, batch_size=2, queue_name="rows")
        zeros = operators.batch_enqueue(x[:1], tf.constant(3, tf.uint32), 3, pad_mode="ZERO")
        get = npu_cpu_ops.dequeue(0, tf.float32, [2, 2], "rows")
        by_number = operators.dequeue(tf.constant(3, tf.uint32), [3, 2], tf.float32)
        assert session.run(put) == 3 and get.shape.as_list() == [2, 2]
        assert [session.run(get).tolist() for _ in range(3)] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [8, 9]]]
        assert session.run(zeros) == 1 and session.run(by_number).tolist() == [[0, 1], [0, 0], [0, 0]]
        session.run(put)
        with pytest.raises(
            Exception, match=r"output_shape=\[1\] and output_type=int32 do not fit the batch, which is f"
        ):
            session.run(npu_cpu_ops.dequeue(0, tf.int32, [1], "rows"))
    with pytest.raises(ValueError, match="batch_size=0, queue_depth=100 and pad_mode='REPLICATE' are not allowed"):
        npu_cpu_ops.batch_enqueue(x, batch_size=0)


def test_both_ends_of_a_queue_wait() -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        get = npu_cpu_ops.dequeue(0, tf.int32, [1], "waiting")
        put = npu_cpu_ops.batch_enqueue(tf.range(3), batch_size=1, queue_name="waiting", queue_depth=1)
        taken: list[Any] = []
        reader = threading.Thread(target=lambda: taken.extend(session.run(get) for _ in range(3)))
        reader.start()
        session.run(put)  # three batches through one place
        reader.join(60)
        assert [each.tolist() for each in taken] == [[0], [1], [2]]


def test_features_are_numbered_as_they_come() -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        features = tf.compat.v1.placeholder(tf.int64, [None, 2])
        numbers = npu_cpu_ops.host_feature_mapping(features, table_name="words")
        assert session.run(numbers, {features: [[70, -3], [70, 9]]}).tolist() == [[0, 1], [0, 2]]
        assert session.run(numbers, {features: [[9, 8]]}).tolist() == [[2, 3]]
        other = npu_cpu_ops.host_feature_mapping(features, table_name="others")
        on_device = npu_cpu_ops.device_feature_mapping(features)
        assert session.run(on_device, {features: [[4, 3]]}).tolist() == [[0, 1]] and on_device.dtype == tf.int32
        assert session.run(other, {features: [[8, 8]]}).tolist() == [[0, 0]] and other.shape.as_list() == [None, 2]


def test_a_channel_that_stops_is_emptied_first() -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        put = operators.outfeed_enqueue_op([tf.constant(3)], "numbers")
        get = operators.outfeed_dequeue_op("numbers", [tf.int32], [[]])
        session.run(put)
        session.run(npu_ops.stop_outfeed_dequeue_op("numbers"))
        assert session.run(get) == [3]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(get)
        with pytest.raises(ValueError, match="the graph has no channel 'words'. Call outfeed_enqueue_op first"):
            npu_ops.stop_outfeed_dequeue_op("words")


def test_operators_of_the_library(tmp_path: pathlib.Path) -> None:
    (tmp_path / "numbers").write_bytes(np.arange(6, dtype=np.float32).tobytes())
    pixels = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for op in (operators.npu_init(), operators.log_time_stamp("1", False), operators.npu_shutdown()):
            assert op.type == "NoOp" and session.run(op) is None
        assert operators.npu_init().name == "npu_init_1" and operators.npu_init("start").name == "start"
        constant = operators.file_constant([2, 3], tf.float32, str(tmp_path / "numbers"))
        assert session.run(constant).tolist() == [[0, 1, 2], [3, 4, 5]]
        image = operators.decode_image_v3(tf.raw_ops.EncodePng(image=pixels), expand_animations=False)
        np.testing.assert_array_equal(session.run(image), pixels)
        assert session.run(operators.get_shape([constant, image])).tolist() == [2, 3, 2, 2, 3]
        with pytest.raises(ValueError, match="file_path='' and file_id='weights'. Give file_path"):
            operators.file_constant([2], tf.float32, file_id="weights")
