"""Collectives among processes of any number of hosts, through TensorFlow's own servers (tf.distribute.Server).

::

    backend = join(rank, size, job="train-7", addresses=["10.0.0.1:60000", "10.0.0.2:60001"])
    total = backend.world.allreduce(gradients, "sum", key="gradients")

Each rank runs a server with a queue. What a rank has to say to another it puts
into that one's queue, with a session of TensorFlow's distributed runtime; there is
no network protocol of our own, and every TensorFlow version can do it. The
runtime's collective ops are not used: they know fewer types and reductions
(TensorFlow 1.15 sums and multiplies only, without float16), sub-groups crash
some versions, and a rank that dies leaves the others of TensorFlow 1.15 waiting
for ever. benchmarks/RESULTS.md has both: they are slower for large tensors and
faster for small ones.

The servers believe whoever reaches them: use them in a network that you trust.
"""

from __future__ import annotations

from npu_shim.distributed.servers.engine import Backend, join

__all__ = ["Backend", "join"]
