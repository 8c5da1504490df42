"""Many collectives that do not depend on each other, on ranks of which one builds more than the others."""
from npu_shim.npu_init import *
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
RANK, SIZE = get_rank_id(), get_rank_size()
if RANK == 0:
    tf.summary.scalar('loss', tf.constant(2.0))  # the names of constants are others now
means = [npu_allreduce(tf.constant([float(index), RANK])) for index in range(60)]
with tf.Session() as session:
    for _ in range(3):
        found = session.run(means)
assert [list(row) for row in found] == [[index, (SIZE - 1) / 2] for index in range(60)]
print('all of them')
