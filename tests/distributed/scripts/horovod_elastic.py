"""Trains with Horovod's elastic state; rank 1 fails once in batch 5, and the launcher restarts the job."""

import os

import tensorflow as tf

import npu_shim.horovod.tensorflow as hvd

v1 = tf.compat.v1
EAGER = tf.executing_eagerly()
hvd.init()
weight = tf.Variable(0.0)
session = None if EAGER else v1.Session()
if session is not None:
    session.run(v1.global_variables_initializer())
added = None if EAGER else weight.assign_add(hvd.allreduce(tf.constant(1.0)))


@hvd.elastic.run
def train(state):
    print(f"rank {hvd.rank()} begins with batch {state.batch}", flush=True)
    while state.batch < 10:
        if session is None:
            weight.assign_add(hvd.allreduce(tf.constant(1.0)))
        else:
            session.run(added)
        state.batch += 1
        if state.batch == 5 and hvd.rank() == 1 and os.environ["NPU_SHIM_RESTART"] == "0":
            raise RuntimeError("rank 1 fails")
        if state.batch % 2 == 0:
            state.commit()


state = hvd.elastic.TensorFlowState([weight], session, batch=0)
train(state)
value = float(weight.numpy()) if session is None else float(session.run(weight))
print(f"rank {hvd.rank()} ends with batch {state.batch} and weight {value}", flush=True)
