"""Dropout of dynamic shapes adds few ops to a graph that is large already."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.npu_init import npu_ops
from npu_shim.ops import xla
from tests.control_flow import control_flow_v2

v1 = tf.compat.v1
SIZE = 300_000  # compiled, where the shape is static or the graph small


def graph_with(count: int) -> v1.Graph:
    graph = v1.Graph()
    with graph.as_default():
        for _ in range(count):
            v1.no_op()
    return graph


def test_the_choice_at_run_time_is_made_in_small_graphs_only():
    added = {}
    for count in (0, xla._MOST_OPS + 1):
        with control_flow_v2(False), graph_with(count).as_default() as graph:
            x = v1.placeholder(tf.float32, [None])
            before = len(graph.get_operations())
            tf.gradients(npu_ops.dropout(x, keep_prob=0.5), [x])
            added[count] = len(graph.get_operations()) - before
    small, large = added.values()
    assert large < 60 and (small > 100 or not xla.is_xla_usable())


@pytest.mark.parametrize("size", [7, SIZE])
def test_dropout_in_a_large_graph(size):
    with graph_with(xla._MOST_OPS + 1).as_default():
        x = v1.placeholder(tf.float32, [None])
        y = npu_ops.dropout(x, keep_prob=0.25, seed=3)
        (dy,) = tf.gradients(y, [x])
        with v1.Session() as sess:
            value, slope = sess.run([y, dy], {x: np.full(size, 2.0, np.float32)})
    np.testing.assert_array_equal(value, 2 * slope)
    assert set(np.unique(slope)) <= {0.0, 4.0} and (size < 100 or abs((slope > 0).mean() - 0.25) < 0.01)
