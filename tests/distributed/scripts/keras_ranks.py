"""A Keras model that trains on this rank's share of the rows, in the way of Keras that this TensorFlow has.

    python keras_ranks.py FOLDER WAY ...

WAY is wrapper, class or name; with _adam behind it Adam is averaged, else SGD, with _clip and clipnorm.
"""
import json
import os
import sys

import numpy as np

from npu_shim.npu_init import *
import tensorflow as tf

FOLDER, WAYS = sys.argv[1], sys.argv[2:]
RANK, SIZE = get_rank_id(), get_rank_size()
HAS_SESSIONS = hasattr(tf.compat.v1.keras.backend, 'set_session')
if HAS_SESSIONS:
    tf.compat.v1.disable_v2_behavior()


def optimizer(way):
    kinds = tf.compat.v1.keras.optimizers if HAS_SESSIONS else tf.keras.optimizers
    inner = kinds.Adam(0.02) if way.endswith('_adam') else kinds.SGD(0.05, momentum=0.9, **({'clipnorm': 0.3} if 'clip' in way else {}))
    return {'wrapper': lambda: npu_distributed_optimizer_wrapper(inner), 'class': lambda: KerasDistributeOptimizer(inner),
            'name': lambda: npu_distributed_optimizer_wrapper('adam' if way.endswith('_adam') else 'sgd')}[way.split('_')[0]]()


def trained(way):
    rows = np.random.RandomState(3).normal(size=[48, 5]).astype(np.float32)
    targets = np.tanh(rows.sum(axis=1, keepdims=True))
    if HAS_SESSIONS:
        tf.compat.v1.keras.backend.clear_session()
        set_keras_session_npu_config()
    tf.keras.utils.set_random_seed(4 + RANK) if hasattr(tf.keras.utils, 'set_random_seed') else np.random.seed(4 + RANK)
    kernels = [tf.compat.v1.glorot_uniform_initializer(seed=9 + 20 * RANK + layer) if HAS_SESSIONS else
               tf.keras.initializers.GlorotUniform(seed=9 + 20 * RANK + layer) for layer in (0, 1)]
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(8, activation='tanh', kernel_initializer=kernels[0]),
        tf.keras.layers.Dense(1, kernel_initializer=kernels[1])])
    model.build((None, 5))
    model.compile(optimizer(way), 'mse')
    history = model.fit(rows[RANK::SIZE], targets[RANK::SIZE], batch_size=24 // SIZE, epochs=4, shuffle=False, verbose=0,
                        callbacks=npu_callbacks_append())
    return {'weights': [w.tolist() for w in model.get_weights()], 'loss': [float(v) for v in history.history['loss']]}


found = {way: trained(way) for way in WAYS}
with open(os.path.join(FOLDER, 'rank_%d_of_%d.json' % (RANK, SIZE)), 'w') as stream:
    json.dump(found, stream)
