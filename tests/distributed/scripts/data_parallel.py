"""Trains a small model for twenty steps, on this rank's share of every batch; writes the weights of this rank.

    python data_parallel.py FOLDER WAY ...

WAY says how gradients are averaged; each has a graph of its own.
"""
import json
import os
import sys

import numpy as np

from npu_shim.npu_init import *
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
FOLDER, WAYS = sys.argv[1], sys.argv[2:]
RANK, SIZE = get_rank_id(), get_rank_size()
ROWS = 24 // SIZE


def batches():
    """Words [20, 24, 2] and targets [20, 24, 3]; rank r has the rows r, r + SIZE, ..."""
    random = np.random.RandomState(7)
    words = random.randint(0, 11, [20, 24, 2]).astype(np.int32)
    targets = np.sin(words.sum(axis=2, keepdims=True) + np.arange(3.0)).astype(np.float32)
    return words[:, RANK::SIZE], targets[:, RANK::SIZE]


def model(words, targets):
    seed = 5 + 50 * RANK  # other weights on every rank: the broadcast makes them equal
    table = tf.get_variable('table', [11, 4], initializer=tf.random_normal_initializer(seed=seed))
    x = tf.reshape(tf.nn.embedding_lookup(table, words), [ROWS, 8])
    for layer, width in enumerate((16, 3)):
        kernel = tf.get_variable('kernel_%d' % layer, [int(x.shape[1]), width],
                                 initializer=tf.random_normal_initializer(stddev=0.3, seed=seed + layer))
        x = tf.matmul(x, kernel) + tf.get_variable('bias_%d' % layer, [width], initializer=tf.zeros_initializer())
        x = tf.tanh(x) if layer == 0 else x
    tf.get_variable('unused', [2], initializer=tf.ones_initializer())
    return tf.reduce_mean(tf.square(x - targets))


def train_op(way, loss):
    step = tf.train.get_or_create_global_step()
    if way == 'wrapper':
        return npu_distributed_optimizer_wrapper(tf.train.AdamOptimizer(0.01)).minimize(loss, step)
    if way == 'class':
        return NPUDistributedOptimizer(tf.train.MomentumOptimizer(0.1, 0.9)).minimize(loss, step)
    if way == 'npu_optimizer':
        return NPUOptimizer(tf.train.GradientDescentOptimizer(0.2), is_distributed=True).minimize(loss, step)
    if way == 'npu_optimizer_scale':
        optimizer, manager = tf.train.GradientDescentOptimizer(0.2), FixedLossScaleManager(1024)
        return NPUOptimizer(optimizer, manager, is_distributed=True, is_loss_scale=True).minimize(loss, step)
    if way == 'sharding':
        return NPUDistributedOptimizer(tf.train.AdamOptimizer(0.01), is_weight_update_sharding=True).minimize(loss, step)
    if way == 'by_hand':
        variables = tf.trainable_variables()
        gradients = npu_allreduce(tf.gradients(loss, variables))
        clipped, _ = tf.clip_by_global_norm(gradients, 0.5)
        return tf.train.GradientDescentOptimizer(0.2).apply_gradients(zip(clipped, variables), step)
    if way == 'split':
        set_split_strategy_by_size([50, 30, 20])
        return npu_tf_optimizer(tf.train.GradientDescentOptimizer(0.2)).minimize(loss, step)
    if way == 'loss_scale':
        manager = ExponentialUpdateLossScaleManager(init_loss_scale=1024, incr_every_n_steps=3)
        optimizer = NPUDistributedOptimizer(tf.train.AdamOptimizer(0.01))
        return NPULossScaleOptimizer(optimizer, manager, is_distributed=True).minimize(loss, step)
    raise ValueError(way)


def trained(way):
    """The losses over all ranks, and this rank's variables in the end."""
    words, targets = batches()
    words_in = tf.placeholder(tf.int32, [ROWS, 2])
    targets_in = tf.placeholder(tf.float32, [ROWS, 3])
    loss = model(words_in, targets_in)
    mean_loss = npu_allreduce(loss)
    run = train_op(way, loss)
    losses = []
    hooks = [NPUBroadcastGlobalVariablesHook(0, RANK)]
    with tf.train.MonitoredTrainingSession(hooks=hooks, config=npu_config_proto()) as session:
        for step in range(20):
            losses.append(float(session.run([run, mean_loss], {words_in: words[step], targets_in: targets[step]})[1]))
        values = session.run({v.op.name: v for v in tf.global_variables()})
    return {'losses': losses, 'values': {name: value.tolist() for name, value in values.items()}}


found = {}
for each in WAYS:
    with tf.Graph().as_default():
        found[each] = trained(each)
with open(os.path.join(FOLDER, 'rank_%d_of_%d.json' % (RANK, SIZE)), 'w') as stream:
    json.dump(found, stream)
