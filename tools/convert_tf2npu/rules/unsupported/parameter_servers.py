"""Parameter servers of a script's own.

``tf.train.Server``, ``replica_device_setter`` and ``SyncReplicasOptimizer`` keep the variables on servers. Workers
fetch them and send gradients through gRPC and the memory of the host in each step, and an NPU waits for both. The
links between NPUs are not used.

Start one rank per device instead. Each rank has all variables, and the optimizer averages the gradients with HCCL:

1. Remove the server, the cluster, ``SyncReplicasOptimizer`` and ``replica_device_setter``, and give sessions no target.
2. Run the tool with ``-d tf_strategy``, which wraps the optimizers.
3. Start the script with ``npu-shim launch --ranks N``. Give each rank its own examples (see NPU252).

The rule reports the first of these calls in each file. NPU250 reports strategies of ``tf.distribute``. A
``replica_device_setter`` without a cluster places variables in one process, and a flag may turn ``SyncReplicasOptimizer``
off, so neither is reported.

Reported::

    import tensorflow as tf

    cluster = tf.train.ClusterSpec({'ps': servers, 'worker': workers})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)

Reported::

    import tensorflow as tf

    optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=4)

Reported::

    import tensorflow as tf

    with tf.Session('grpc://worker0:2222') as session:
        session.run(train_op)

Untouched::

    import tensorflow as tf

    server = tf.train.Server.create_local_server()
    with tf.device(tf.train.replica_device_setter(FLAGS.ps_tasks)):
        build()
    if FLAGS.sync_replicas:
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, FLAGS.replicas)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    with tf.Session(target='', config=npu_config_proto()) as session:
        session.run(train_op)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_in_test
from ...semantics.signatures import bind_arguments
from ...syntax.expressions import boxed_constant, last_part
from ..base import Context, Finding

CODE = "NPU257"
_SERVERS = frozenset({"tensorflow.train.Server", "tensorflow.distribute.Server"})
_SETTER = "tensorflow.train.replica_device_setter"
_SYNC = "tensorflow.train.SyncReplicasOptimizer"
_SESSIONS = frozenset(
    "tensorflow." + name
    for name in """Session InteractiveSession train.MonitoredTrainingSession train.ChiefSessionCreator
train.WorkerSessionCreator""".split()
)
_SETTER_ARGUMENTS = ("ps_tasks", "ps_device", "worker_device", "merge_devices", "cluster", "ps_ops", "ps_strategy")
_TARGETS = ("target", "master")


def check_file(context: Context) -> Iterator[Finding]:
    for node, name in context.called_names.items():
        if _is_of_servers(context, node, name) and not is_in_test(context, node):
            yield Finding(
                node,
                "{0}: variables on servers pass through the host in each step. "
                "Remove it, use -d tf_strategy, and start one rank per device",
                last_part(name),
            )
            return


def _is_of_servers(context: Context, node: ast.Call, name: str) -> bool:
    """Return True if a call starts, or talks to, the servers of a cluster."""
    if name in _SERVERS:
        return True
    if name == _SYNC:
        return not any(isinstance(p, (ast.If, ast.IfExp)) for p in context.names.ancestors(node))
    if name == _SETTER:
        return bind_arguments(node, _SETTER_ARGUMENTS).is_given("cluster")
    if name in _SESSIONS:
        target = next((k.value for k in node.keywords if k.arg in _TARGETS), node.args[0] if node.args else None)
        value = boxed_constant(target)
        return value is not None and isinstance(value[0], str) and value[0].startswith("grpc")
    return False
