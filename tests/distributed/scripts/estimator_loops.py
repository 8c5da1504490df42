"""An NPUEstimator on several ranks, with 1 and with 10 steps per run; writes what each comes to.

    python estimator_loops.py FOLDER
"""
import json
import os
import sys

import numpy as np

from npu_shim.npu_init import *
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
FOLDER = sys.argv[1]
RANK, SIZE = get_rank_id(), get_rank_size()
x = np.linspace(-1, 1, 64).astype(np.float32).reshape(64, 1)


def input_fn():
    dataset = tf.data.Dataset.from_tensor_slices((x, 3 * x)).shard(SIZE, RANK)
    return dataset.repeat().batch(16 // SIZE, drop_remainder=True)


def model_fn(features, labels, mode):
    w = tf.get_variable('w', [1, 1], initializer=tf.random_normal_initializer(seed=2 + RANK))
    loss = tf.reduce_mean(tf.square(tf.matmul(features, w) - labels))
    optimizer = npu_distributed_optimizer_wrapper(tf.train.MomentumOptimizer(0.05, 0.9))
    return NPUEstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss, tf.train.get_or_create_global_step()))


found = {}
for steps in (1, 10):
    folder = os.path.join(FOLDER, 'model_%d_of_%d_%d' % (RANK, SIZE, steps))
    estimator = NPUEstimator(model_fn, config=NPURunConfig(model_dir=folder, iterations_per_loop=steps))
    estimator.train(input_fn, steps=40, hooks=npu_hooks_append())
    found[steps] = {'w': float(estimator.get_variable_value('w')[0, 0]), 'step': int(estimator.get_variable_value('global_step'))}
with open(os.path.join(FOLDER, 'rank_%d_of_%d.json' % (RANK, SIZE)), 'w') as stream:
    json.dump(found, stream)
