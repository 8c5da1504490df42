"""Two ranks of a host read and write one memory."""

from __future__ import annotations

import numpy as np

from tests.distributed.conftest import Ranks, is_clean

SOURCE = """
from npu_shim.distributed import hccl_ops, remote_memory
address, size = remote_memory.malloc_shared_memory("rows", [2, 3], tf.float32)
own = tf.constant([[rank, address + 12 * rank, 12]], tf.uint64)
hccl_ops.remote_write(own, tf.fill([1, 3], rank + 1.0), tf.float32)
hccl_ops.allreduce(tf.constant(1.0), "sum")
both = tf.constant([[0, address, 12], [1, address + 12, 12]], tf.uint64)
result = size, hccl_ops.remote_read(both, tf.float32).numpy()
"""


def test_each_rank_sees_the_rows_of_both() -> None:
    ranks = Ranks(2, "shm", tensorflow=True)
    try:
        assert ranks.joined(180) == [None] * 2
        for size, rows in ranks.run(SOURCE):
            assert size == 24
            np.testing.assert_array_equal(rows, [[1.0] * 3, [2.0] * 3])
    finally:
        ranks.end()
    assert is_clean(ranks)
