"""Memory by address on one process; tests/distributed/test_remote_memory.py has several ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from npu_shim.hccl import hccl_ops
from npu_shim.npu_cpu import npu_cpu_ops

from npu_shim import tf_adapter
from npu_shim.estimator.npu import npu_plugin, util


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


def test_rows_go_to_places_of_a_variable_and_come_from_places_of_a_tensor() -> None:
    address, _ = npu_plugin.malloc_shared_memory("scattered", [4, 2], tf.float32)
    table = np.array([[0, address, 8], [0, address + 24, 8]], np.uint64)  # the first and the last row
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        pool = npu_plugin.get_rdma_cache(tf.float32, [3, 2], "pool")
        session.run(pool.initializer)
        values = tf.constant([[1.0, 2], [3, 4], [5, 6]])
        session.run(hccl_ops.remote_scatter_write(table, values, tf.constant([4, 1], tf.uint64)))
        offsets = tf.constant([0, 4], tf.uint64)
        read = hccl_ops.remote_ref_read(tf.constant(table[::-1].copy()), pool, offsets)
        assert session.run(read).tolist() == [[2, 3], [0, 0], [5, 6]]
        assert session.run(pool).tolist() == [[2, 3], [0, 0], [5, 6]]
        for wrong, message in ((5, "a row of 8 bytes does not fit offset 5"), (4, "there are 1 offsets for 2 rows")):
            places = tf.constant([0, wrong][-1 if wrong == 4 else 0 :], tf.uint64)
            with pytest.raises(Exception, match=message):
                session.run(hccl_ops.remote_ref_read(table, pool, places))
        with pytest.raises(TypeError, match="hccl_ops.remote_ref_read: cache=.* is updated in place"):
            hccl_ops.remote_ref_read(table, tf.zeros([6]), offsets)


def test_parts_at_addresses_are_gathered_on_one_process() -> None:
    address, _ = npu_plugin.malloc_shared_memory("gathered", [6], tf.int32)
    rows = np.array([[0, address, 24]], np.uint64)
    parts = np.array([[address + 16, 8], [address, 4]], np.uint64)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        session.run(hccl_ops.remote_write(rows, tf.range(6)[None] * 10, tf.int32))
        received, own = hccl_ops.gather_all_to_all_v(
            parts, tf.constant([2], tf.int64), tf.constant([3], tf.int64), tf.constant([0], tf.int64), tf.int32, -1
        )
        assert [each.tolist() for each in session.run([received, own])] == [[40, 50, 0]] * 2
        wrong = hccl_ops.gather_all_to_all_v(parts, [1], [3], [0], tf.int32, -1)[1]
        with pytest.raises(Exception, match="addrinfo_count_per_rank adds up to 1, but addrinfo has 2 rows"):
            session.run(wrong)
    with pytest.raises(TypeError, match="gather_all_to_all_v"):
        hccl_ops.gather_all_to_all_v(parts, [1], [3], [0], tf.bool, -1)
