"""An NPUEstimator that trains 300 steps on several ranks, from its checkpoint where there is one.

    python estimator_restart.py FOLDER
"""
import sys
import time

import numpy as np

from npu_shim.npu_init import *
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
RANK, SIZE = get_rank_id(), get_rank_size()
x = np.linspace(-1, 1, 64).astype(np.float32).reshape(64, 1)


class Slowly(tf.train.SessionRunHook):
    def after_create_session(self, session, coord):
        print('began at step %d' % session.run(tf.train.get_global_step()), flush=True)

    def after_run(self, run_context, run_values):
        time.sleep(0.005)


def input_fn():
    return tf.data.Dataset.from_tensor_slices((x, 3 * x)).shard(SIZE, RANK).repeat().batch(64 // SIZE)


def model_fn(features, labels, mode):
    w = tf.get_variable('w', [1, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(features, w) - labels))
    optimizer = NPUDistributedOptimizer(tf.train.AdamOptimizer(0.001))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss, tf.train.get_global_step()))


job = NPUEstimator(model_fn, config=NPURunConfig(model_dir=sys.argv[1], save_checkpoints_steps=50))
job.train(input_fn, max_steps=300, hooks=[Slowly()])
print('weight %r' % float(job.get_variable_value('w')[0, 0]))
