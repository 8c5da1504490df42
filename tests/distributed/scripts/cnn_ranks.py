"""A small CNN over handwritten digits, 50 steps with each name that averages gradients; writes the weights of this rank.

    python cnn_ranks.py FOLDER NAME_OPTIMIZER ...

NAME says what averages, OPTIMIZER is sgd or adam. Rank r of n has the images r, r + n, ... of every batch of 32.
"""
import json
import os
import sys

import numpy as np
from sklearn.datasets import load_digits

from npu_shim.npu_init import *
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
FOLDER, WAYS = sys.argv[1], sys.argv[2:]
RANK, SIZE = get_rank_id(), get_rank_size()
STEPS, BATCH = 50, 32
digits = load_digits()
CHOSEN = np.random.RandomState(7).randint(0, 1400, [STEPS, BATCH])[:, RANK::SIZE]
IMAGES = (digits.images / 16).astype(np.float32)[..., np.newaxis][CHOSEN]
LABELS = digits.target.astype(np.int32)[CHOSEN]


def variable(name, shape):
    # Others could be updated with the gradient that is there first while the next one still reads them.
    return tf.get_variable(name, shape, use_resource=True, initializer=tf.glorot_uniform_initializer(seed=len(name) + 100 * RANK))


def loss_of(images, labels):
    x = tf.tanh(tf.nn.conv2d(images, variable('conv', [3, 3, 1, 8]), [1, 2, 2, 1], 'SAME'))
    x = tf.tanh(tf.nn.conv2d(x, variable('conv_2', [3, 3, 8, 8]), [1, 1, 1, 1], 'SAME'))
    logits = tf.matmul(tf.reshape(x, [BATCH // SIZE, 128]), variable('dense_kernel', [128, 10])) + variable('bias', [1, 10])
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def train_op(name, kind, loss):
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.AdamOptimizer(0.002) if kind == 'adam' else tf.train.GradientDescentOptimizer(0.3)
    if name == 'allreduce':
        variables = tf.trainable_variables()
        return optimizer.apply_gradients(zip(npu_allreduce(tf.gradients(loss, variables)), variables), step)
    manager = FixedLossScaleManager(1024)
    wrap = {
        'wrapper': npu_distributed_optimizer_wrapper, 'class': NPUDistributedOptimizer, 'tf_optimizer': npu_tf_optimizer,
        'npu_optimizer': lambda inner: NPUOptimizer(inner, is_distributed=True),
        'npu_optimizer_scale': lambda inner: NPUOptimizer(inner, manager, is_distributed=True, is_loss_scale=True),
        'loss_scale': lambda inner: NPULossScaleOptimizer(NPUDistributedOptimizer(inner), manager, is_distributed=True),
        'sharding': lambda inner: NPUDistributedOptimizer(inner, is_weight_update_sharding=True)}[name]
    return wrap(optimizer).minimize(loss, step)


def trained(way):
    name, kind = way.rsplit('_', 1)
    images = tf.placeholder(tf.float32, [BATCH // SIZE, 8, 8, 1])
    labels = tf.placeholder(tf.int32, [BATCH // SIZE])
    loss = loss_of(images, labels)
    run, mean_loss = train_op(name, kind, loss), npu_allreduce(loss)
    hooks = [NPUBroadcastGlobalVariablesHook(0, RANK)]
    with tf.train.MonitoredTrainingSession(hooks=hooks, config=npu_config_proto()) as session:
        losses = [float(session.run([run, mean_loss], {images: IMAGES[step], labels: LABELS[step]})[1]) for step in range(STEPS)]
        values = session.run({v.op.name: v for v in tf.global_variables()})
    return {'losses': losses, 'values': {key: value.tolist() for key, value in values.items()}}


found = {}
for each in WAYS:
    with tf.Graph().as_default():
        found[each] = trained(each)
with open(os.path.join(FOLDER, 'rank_%d_of_%d.json' % (RANK, SIZE)), 'w') as stream:
    json.dump(found, stream)
