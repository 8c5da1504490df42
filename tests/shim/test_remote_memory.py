"""Memory by address on one process; tests/distributed/test_remote_memory.py has several ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from npu_shim import tf_adapter
from npu_shim.estimator.npu import npu_plugin, util
from npu_shim.hccl import hccl_ops
from npu_shim.npu_cpu import npu_cpu_ops


def test_rows_are_read_and_written_by_address() -> None:
    address, size = npu_plugin.malloc_shared_memory("rows", [5, 3], tf_adapter.DT_FLOAT)
    assert size == 60 and npu_plugin.malloc_shared_memory("rows", [5, 3], tf.float32) == (address, size)
    table = np.array([[0, address, size]], np.uint64)

    def build() -> Any:
        rows = npu_cpu_ops.embeddingrankid(table, tf.constant([4, 1], tf.int64), row_memory=12)
        written = hccl_ops.remote_write(rows, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], tf.float32)
        with tf.control_dependencies([written]):
            again = npu_cpu_ops.embeddingrankid(table, tf.constant([0, 1, 4], tf.int64), row_memory=12)
            return hccl_ops.remote_read(again, tf.float32)

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        assert session.run(build()).tolist() == [[0, 0, 0], [4, 5, 6], [1, 2, 3]]
        beyond = tf.constant([[0, address + 60, 12]], tf.uint64)
        with pytest.raises(Exception, match="is in no memory of this process. Call malloc_shared_memory"):
            session.run(hccl_ops.remote_read(beyond, tf.float32))


def test_a_variable_of_the_host_gives_its_initial_value() -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variable = tf.compat.v1.get_variable("host_rows", initializer=np.arange(6, dtype=np.float32).reshape(2, 3))
        cache = npu_plugin.get_rdma_cache(tf.float32, [2, 3])
        session.run(util.variable_initializer_in_host([variable, cache]))
        address, size = npu_plugin.get_var_addr_and_size("host_rows")
        read = hccl_ops.remote_read(tf.constant([[0, address + 12, 12]], tf.uint64), tf.float32)
        assert size == 24 and session.run(read).tolist() == [[3, 4, 5]]
        assert cache.op.name == "rdma_w" and not session.run(cache).any()
        with pytest.raises(RuntimeError, match="the default graph has no variable 'nothing'. Create it first"):
            npu_plugin.get_var_addr_and_size("nothing")
    with pytest.raises(ValueError, match="var_name=3 is not allowed"):
        npu_plugin.get_var_addr_and_size(3)
