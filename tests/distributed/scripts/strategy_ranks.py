"""Trains with NPUStrategy in each of its ways; writes the weights that this rank comes to, by way.

    python strategy_ranks.py FOLDER STYLE WAY ...

STYLE is graph or eager. Batches of 24 rows in all are read in order, so that ranks and one process see the same ones.
"""
import atexit
import json
import os
import sys

import numpy as np

from npu_shim.npu_init import *
from npu_shim import npu_device
import tensorflow as tf

FOLDER, STYLE, WAYS = sys.argv[1], sys.argv[2], sys.argv[3:]
v1 = tf.compat.v1
if STYLE == 'graph':
    v1.disable_v2_behavior()
RANK, SIZE = get_rank_id(), get_rank_size()
ROWS, STEPS, BATCH = 240, 20, 24
# When a session of TensorFlow 2.6 closes, it often waits for each iterator of a strategy as long as the iterator lived, up
# to a minute. Two of them are more than the other rank waits for this one. So the sessions stay open.
OPEN = []
X = np.random.RandomState(3).normal(size=[ROWS, 5]).astype(np.float32)
Y = np.tanh(X.sum(axis=1, keepdims=True))


def data(batch):
    return tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(batch, drop_remainder=True)


def weights_of(values):
    return {name: np.asarray(value).tolist() for name, value in values.items()}


def model_fn(features, labels, mode, params):
    kernel = v1.get_variable('kernel', [5, 8], initializer=v1.random_normal_initializer(seed=4 + 10 * RANK))
    head = v1.get_variable('head', [8, 1], initializer=v1.random_normal_initializer(seed=5 + 10 * RANK))
    loss = tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(features, kernel)), head) - labels))
    train_op = None
    if mode == 'train':
        train_op = params['optimizer']().minimize(loss, v1.train.get_or_create_global_step())
    metrics = {'rows': v1.metrics.mean(tf.ones_like(labels)), 'error': v1.metrics.mean(tf.abs(labels))}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def with_estimator(way, optimizer):
    config = {'model_dir': os.path.join(FOLDER, 'model_%s_%d_of_%d' % (way, RANK, SIZE)), 'tf_random_seed': 1,
              'train_distribute': npu_strategy.NPUStrategy(), 'eval_distribute': npu_strategy.NPUStrategy()}
    if way.startswith('npu_estimator'):
        job = NPUEstimator(model_fn, config=NPURunConfig(**config), params={'optimizer': optimizer})
    else:
        job = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(**config), params={'optimizer': optimizer})

    def input_fn(input_context=None):
        rows = data(BATCH // SIZE)
        if way.endswith('by_hand'):
            rows = tf.data.Dataset.from_tensor_slices((X, Y)).shard(get_rank_size(), get_rank_id()).repeat().batch(BATCH // SIZE)
        elif input_context:  # as scripts for several workers have it
            rows = rows.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
        return rows

    job.train(input_fn, steps=STEPS)
    found = job.evaluate(lambda: tf.data.Dataset.from_tensor_slices((X[:50], Y[:50])).batch(BATCH))
    return {**{name: job.get_variable_value(name) for name in ('kernel', 'head', 'global_step')},
            'loss': found['loss'], 'error': found['error']}


def keras_model(seed):
    layers = []
    for index, (width, activation) in enumerate(((8, 'tanh'), (1, None))):
        start = v1.glorot_uniform_initializer(seed=seed + index) if STYLE == 'graph' else \
            tf.keras.initializers.GlorotUniform(seed=seed + index)
        shape = {'input_shape': (5,)} if not index else {}
        layers.append(tf.keras.layers.Dense(width, activation=activation, kernel_initializer=start, **shape))
    return tf.keras.Sequential(layers)


def with_keras(way, optimizer):
    if STYLE == 'graph':
        v1.keras.backend.clear_session()
        set_keras_session_npu_config()
    strategy = npu_strategy.NPUStrategy()
    with strategy.scope():
        model = keras_model(seed=9 + 20 * RANK)
        model.compile(optimizer(), 'mse', metrics=['mae'])
    if 'clip' in way:
        npu_device.open().as_default()
        model = npu_device.distribute.data_parallel(model)
    if way.startswith('keras_dataset'):
        history = model.fit(data(BATCH), steps_per_epoch=10, epochs=2, verbose=0)
    else:
        history = model.fit(X, Y, batch_size=BATCH, epochs=2, shuffle=False, verbose=0)
    evaluated, predicted = model.evaluate(X[:48], Y[:48], batch_size=16, verbose=0), model.predict(X[:48], batch_size=16)
    if STYLE == 'graph':
        OPEN.append(v1.keras.backend.get_session())
    if RANK == 0:  # alone, while the others are gone on
        np.testing.assert_allclose(model.evaluate(X[:48], Y[:48], batch_size=16, verbose=0), evaluated, rtol=1e-5)
        np.testing.assert_array_equal(model.predict(X[:48], batch_size=16), predicted)
    return {**{'weight_%d' % index: value for index, value in enumerate(model.get_weights())},
            'loss': evaluated, 'history': history.history['loss'][-1], 'prediction': predicted}


def with_loop(way, optimizer):
    strategy = npu_strategy.NPUStrategy()
    run = getattr(strategy, 'run', None) or strategy.experimental_run_v2
    with strategy.scope():
        optimizer = optimizer()
        start = np.random.RandomState(5 + RANK).normal(size=[5, 1]).astype(np.float32)
        weight = tf.Variable(start, name='weight_%d' % WAYS.index(way))

    def step(batch):
        x, y = batch
        if isinstance(optimizer, v1.train.Optimizer):
            loss = tf.reduce_sum(tf.square(tf.matmul(x, weight) - y)) / BATCH
            with tf.control_dependencies([optimizer.minimize(loss)]):
                return tf.identity(loss)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.matmul(x, weight) - y)) / BATCH
        optimizer.apply_gradients(zip(tape.gradient(loss, [weight]), [weight]))
        return loss

    if way.startswith('loop_function'):
        def read(context):
            assert context.num_replicas_in_sync == SIZE
            return data(context.get_per_replica_batch_size(BATCH))
        batches = strategy.make_input_fn_iterator(read) if STYLE == 'graph' else strategy.distribute_datasets_from_function(read)
    elif STYLE == 'graph':
        batches = strategy.make_dataset_iterator(data(BATCH))
    else:
        batches = strategy.experimental_distribute_dataset(data(BATCH))
    if STYLE == 'eager':
        each = tf.function(lambda batch: strategy.reduce('SUM', run(step, args=(batch,)), axis=None))
        iterator = iter(batches)
        losses = [float(each(next(iterator))) for _ in range(STEPS)]
        return {'weight': weight.numpy(), 'loss': losses}
    with strategy.scope():
        loss = strategy.reduce(tf.distribute.ReduceOp.SUM, run(step, args=(batches.get_next(),)), axis=None)
    with v1.Session(config=npu_config_proto()) as sess:
        sess.run([batches.initialize(), v1.global_variables_initializer()])
        losses = [float(sess.run(loss)) for _ in range(STEPS)]
        return {'weight': sess.run(weight), 'loss': losses}


def reductions(way, optimizer):
    strategy = npu_strategy.NPUStrategy()
    op = tf.distribute.ReduceOp
    with strategy.scope():
        mine = tf.constant([[1.0, 2.0], [3.0, 4.0]]) * (1 if SIZE == 1 else 0.5 + RANK)  # on two ranks the mean is that of one
        run = getattr(strategy, 'run', None) or strategy.experimental_run_v2
        rank = run(lambda: tf.identity(tf.distribute.get_replica_context().replica_id_in_sync_group))
        everywhere = run(lambda: tf.distribute.get_replica_context().all_reduce(op.MEAN, mine))
        found = {'mean': strategy.reduce(op.MEAN, mine, axis=None), 'rows': strategy.reduce(op.MEAN, mine, axis=0),
                 'sum': strategy.reduce(op.SUM, mine, axis=None) / SIZE, 'in_replica': everywhere,
                 'ranks': strategy.reduce(op.SUM, rank, axis=None) - SIZE * (SIZE - 1) // 2}
    if STYLE == 'eager':
        return found
    with v1.Session(config=npu_config_proto()) as sess:
        return sess.run(found)


def optimizer_of(way):
    """SGD, or Adam where the way's name says so; of the kind that the way is made for."""
    adam, keras = 'adam' in way, 'keras' in way or STYLE == 'eager'
    kinds = tf.keras.optimizers if STYLE == 'eager' else v1.keras.optimizers
    if keras:
        clip = {'clipnorm': 0.01} if 'clip' in way else {}
        return lambda: wrapped(way, kinds.Adam(0.01) if adam else kinds.SGD(0.05, **clip))
    return lambda: wrapped(way, v1.train.AdamOptimizer(0.01) if adam else v1.train.GradientDescentOptimizer(0.05))


def wrapped(way, optimizer):
    return npu_distributed_optimizer_wrapper(optimizer) if 'wrapped' in way else optimizer


KINDS = {'estimator': with_estimator, 'npu_estimator': with_estimator, 'keras': with_keras, 'loop': with_loop,
         'reduce': reductions}
found = {}
for each_way in WAYS:
    kind = next(name for name in sorted(KINDS, key=len, reverse=True) if each_way.startswith(name))
    with tf.Graph().as_default() if STYLE == 'graph' and kind != 'keras' else tf.name_scope(''):
        found[each_way] = weights_of(KINDS[kind](each_way, optimizer_of(each_way)))
with open(os.path.join(FOLDER, 'rank_%d_of_%d.json' % (RANK, SIZE)), 'w') as stream:
    json.dump(found, stream)
# without the end of the sessions, which TensorFlow 2.6 closes with the same wait
atexit._run_exitfuncs()
sys.stdout.flush()
os._exit(0)
