"""Two ranks of a host read and write one memory, exchange parts of it, and reduce to one of them."""

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
read = hccl_ops.remote_read(both, tf.float32).numpy()
hccl_ops.allreduce(tf.constant(1.0), "sum")
pool = tf.Variable(tf.zeros([4]))
hccl_ops.remote_ref_read(tf.constant([[0, address + 12 * (1 - rank) + 4, 8]], tf.uint64), pool, [1])  # of the other rank
parts = tf.constant([[address, 4], [address + 12, 8]], tf.uint64)  # one element for rank 0, two for rank 1
counts, begins = ([1, 1], [0, 1]) if rank == 0 else ([2, 2], [0, 2])
received, own = hccl_ops.gather_all_to_all_v(
    parts, tf.constant([1, 1], tf.int64), tf.constant(counts, tf.int64), tf.constant(begins, tf.int64), tf.float32, -1
)
from npu_shim.optimizer import distributed
mean, total = (distributed.reduce(tf.constant([rank + 1.0]), 1, average).numpy() for average in (True, False))
rest = pool.numpy(), received.numpy(), own.numpy(), mean, total
result = size, read, [part.tolist() for part in rest]
"""


def test_each_rank_sees_the_rows_of_both() -> None:
    ranks = Ranks(2, "shm", tensorflow=True)
    try:
        assert ranks.joined(180) == [None] * 2
        first, second = ranks.run(SOURCE)
        for size, rows, _ in (first, second):
            assert size == 24
            np.testing.assert_array_equal(rows, [[1.0] * 3, [2.0] * 3])
        gathered = [1.0, 2.0, 2.0]
        assert first[2] == [[0, 2, 2, 0], [1.0, 1.0], gathered, [1.0], [1.0]]
        assert second[2] == [[0, 1, 1, 0], [2.0, 2.0, 2.0, 2.0], gathered, [1.5], [3.0]]
    finally:
        ranks.end()
    assert is_clean(ranks)
