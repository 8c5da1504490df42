"""Trains a small model with TensorFlow on ranks; goes on from the checkpoint of rank 0.

    python checkpointed.py FOLDER STEPS [LATE_RANK LATE_SECONDS]

Each rank writes end_RANK.npy, all its weights, at the end.
"""
import os
import sys
import time

import numpy as np

from npu_shim.npu_init import *
import tensorflow.compat.v1 as tf

FOLDER, STEPS = sys.argv[1], int(sys.argv[2])
RANK, SIZE = get_rank_id(), get_rank_size()


def batch(step):
    """This rank's share of the step's 24 rows."""
    rows = np.random.RandomState(step).normal(size=(24, 10)).astype(np.float32)[RANK::SIZE]
    return rows, np.sin(rows.sum(axis=1, keepdims=True))


if len(sys.argv) > 3 and int(sys.argv[3]) == RANK:
    time.sleep(float(sys.argv[4]))
tf.disable_v2_behavior()
x, y = tf.placeholder(tf.float32, [24 // SIZE, 10]), tf.placeholder(tf.float32, [24 // SIZE, 1])
hidden = x
for layer, width in enumerate((32, 1)):
    kernel = tf.get_variable('kernel_%d' % layer, [int(hidden.shape[1]), width],
                             initializer=tf.glorot_uniform_initializer(seed=layer + 10 * RANK))
    hidden = tf.matmul(hidden, kernel) + tf.get_variable('bias_%d' % layer, [width], initializer=tf.zeros_initializer())
    hidden = tf.tanh(hidden) if layer == 0 else hidden
step = tf.train.get_or_create_global_step()
optimizer = npu_distributed_optimizer_wrapper(tf.train.AdamOptimizer(0.01))
train = optimizer.minimize(tf.reduce_mean(tf.square(hidden - y)), step)
weights = tf.concat([tf.reshape(v, [-1]) for v in tf.trainable_variables()], axis=0)


def now(step_context):
    """The global step and the weights, without hooks."""
    return step_context.session.run([step, weights])


with tf.train.MonitoredTrainingSession(checkpoint_dir=FOLDER if RANK == 0 else None, save_checkpoint_steps=10,
                                       hooks=[NPUBroadcastGlobalVariablesHook(0, RANK)], save_summaries_steps=0,
                                       log_step_count_steps=0, config=npu_config_proto()) as session:
    at, found = session.run_step_fn(now)
    while at < STEPS:
        rows, wanted = batch(at)
        session.run(train, {x: rows, y: wanted})
        at, found = session.run_step_fn(now)
np.save(os.path.join(FOLDER, 'end_%d.npy' % RANK), found)
time.sleep(float(os.environ.get('LINGER_SECONDS', '0')))  # where only being ended shall end it
