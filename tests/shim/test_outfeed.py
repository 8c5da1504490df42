"""Channels hand what a graph computes to threads of the host, all of it and in order."""

from __future__ import annotations

import io

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.estimator import npu_ops
from npu_shim.estimator.npu import util
from npu_shim.estimator.npu.npu_hook import NPUInfeedOutfeedSessionHook, NPULogOutfeedSessionHook, NPUShutDownHook

pytestmark = pytest.mark.twice

v1 = tf.compat.v1


def test_a_channel_is_read_in_the_order_of_its_writes():
    with tf.Graph().as_default(), v1.Session() as sess:
        x = v1.placeholder(tf.float32, [2])
        put = npu_ops.outfeed_enqueue_op("numbers", [x, tf.constant(7)])
        taken = npu_ops.outfeed_dequeue_op("numbers", [tf.float32, tf.int32], [[2], []])
        assert [t.shape.as_list() for t in taken] == [[2], []]
        for i in range(3):
            sess.run(put, {x: [i, i + 0.5]})
        got = [sess.run(taken) for _ in range(3)]
    np.testing.assert_array_equal([g[0] for g in got], [[0, 0.5], [1, 1.5], [2, 2.5]])
    assert {int(g[1]) for g in got} == {7}


def test_both_ends_must_agree():
    with tf.Graph().as_default():
        npu_ops.outfeed_enqueue_op("numbers", [tf.constant(1.0)])
        with pytest.raises(
            ValueError, match=r"channel 'numbers' carries \['float32'\], not \['int32'\]: use the same types"
        ):
            npu_ops.outfeed_dequeue_op("numbers", [tf.int32], [[]])


@pytest.mark.parametrize("iterations", [1, 5])
def test_the_log_channel_is_written_to_a_stream(iterations):
    stream = io.StringIO()
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        after = step.assign_add(1)
        said = npu_ops.outfeed_enqueue_op("_npu_log", [tf.strings.join(["step ", tf.as_string(after)])])
        loop = util.IterationPerLoop()
        op = loop.create_iteration_per_loop_var(tf.group(said))
        with v1.train.MonitoredSession(hooks=[NPULogOutfeedSessionHook(stream), NPUShutDownHook()]) as sess:
            loop.load_iteration_per_loop_var(sess, iterations)
            for _ in range(10 // iterations):
                sess.run(op)
    assert stream.getvalue().splitlines() == [f"step {i}" for i in range(1, 11)]


def test_a_graph_without_the_log_channel_is_unchanged():
    with tf.Graph().as_default():
        one = tf.constant(1)
        with v1.train.MonitoredSession(hooks=[NPULogOutfeedSessionHook(io.StringIO())]) as sess:
            assert sess.run(one) == 1


def test_ops_that_read_a_channel_run_until_it_is_empty():
    seen = []
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        put = npu_ops.outfeed_enqueue_op("steps", [step.assign_add(1)])
        (taken,) = npu_ops.outfeed_dequeue_op("steps", [tf.int64], [[]])
        read = v1.py_func(lambda value: seen.append(int(value)), [taken], [])
        with v1.train.MonitoredSession(hooks=[NPUInfeedOutfeedSessionHook(read, "steps")]) as sess:
            for _ in range(20):
                sess.run(put)
        assert seen == list(range(1, 21))
        with pytest.raises(ValueError, match="channel_name='nobody': nothing is put on this channel"):
            NPUInfeedOutfeedSessionHook(read, "nobody").begin()
