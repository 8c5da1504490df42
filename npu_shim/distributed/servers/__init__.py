"""The collective backend for processes of several hosts, through TensorFlow servers (tf.distribute.Server).

::

    backend = join(rank, size, job="train-7", addresses=["10.0.0.1:60000", "10.0.0.2:60001"])
    total = backend.world.allreduce(gradients, "sum", key="gradients")

Each rank runs a server with a queue. A rank puts its messages into the queue of
another rank with a session of TensorFlow's distributed runtime, so npu_shim needs
no network protocol of its own, and every TensorFlow version works. The runtime's
collective ops are not used: they support fewer types and reductions (TensorFlow
1.15: sum and product only, no float16), sub-groups crash some versions, and in
TensorFlow 1.15 the other ranks wait for ever when one dies. benchmarks/RESULTS.md
has both: these ops are slower for large tensors and faster for small ones.

The servers accept every connection: use them only in a trusted network.
"""

from __future__ import annotations

from npu_shim.distributed.servers.engine import Backend, join

__all__ = ["Backend", "join"]
