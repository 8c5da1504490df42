"""An NPUEstimator on several ranks, and the files that it leaves; writes what each rank sees.

    python estimator_files.py FOLDER WAY ...
"""
import json
import os
import sys

import numpy as np

from npu_shim.npu_init import *
from npu_shim.estimator.rank_checkpoints import SharedFolder
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
FOLDER, WAYS = sys.argv[1], sys.argv[2:]
waits, gather = [], SharedFolder.gather_flags
SharedFolder.gather_flags = lambda self, *flags: waits.append(flags) or gather(self, *flags)
RANK, SIZE = get_rank_id(), get_rank_size()
x = np.linspace(-1, 1, 64).astype(np.float32).reshape(64, 1)


def input_fn():
    return tf.data.Dataset.from_tensor_slices((x, 3 * x)).shard(SIZE, RANK).repeat().batch(16 // SIZE)


def eval_fn():
    return tf.data.Dataset.from_tensor_slices((x, 3 * x)).batch(20)


def model_fn(features, labels, mode):
    w = tf.get_variable('w', [1, 1], initializer=tf.random_normal_initializer(seed=2 + RANK))
    guess = tf.matmul(features, w)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={'guess': guess}, export_outputs={
            'serving_default': tf.estimator.export.PredictOutput({'guess': guess})})
    loss = tf.reduce_mean(tf.square(guess - labels))
    tf.summary.scalar('weight', w[0, 0])
    train_op = None
    if mode == tf.estimator.ModeKeys.TRAIN:
        optimizer = npu_distributed_optimizer_wrapper(tf.train.MomentumOptimizer(0.05, 0.9))
        train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    return NPUEstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops={'error': tf.metrics.mean(tf.abs(guess - labels))})


def serving():
    given = tf.placeholder(tf.float32, [None, 1])
    return tf.estimator.export.TensorServingInputReceiver(given, {'x': given})


def folder_of(way):
    name = '%s_of_%d' % (way, SIZE)
    return os.path.join(FOLDER, name, str(RANK)) if way == 'own_folders' else os.path.join(FOLDER, name)


def estimator(way):
    saves = {'seconds': {'save_checkpoints_secs': 1}, 'one_saves': {'save_checkpoints_steps': 10 if RANK == 0 else 0}}
    config = NPURunConfig(model_dir=folder_of(way), save_summary_steps=5, log_step_count_steps=5,
                          **saves.get(way, {'save_checkpoints_steps': 10}))
    return NPUEstimator(model_fn, config=config)


def trained(way):
    job = estimator(way)
    if way in ('train_and_evaluate', 'seconds'):
        exporter = tf.estimator.FinalExporter('final', serving)
        result, _ = tf.estimator.train_and_evaluate(
            job, tf.estimator.TrainSpec(input_fn, max_steps=25),
            tf.estimator.EvalSpec(eval_fn, exporters=[exporter], start_delay_secs=0, throttle_secs=0))
    else:
        job.train(input_fn, steps=15)
        job = estimator(way)  # as a new process would: from the checkpoint
        job.train(input_fn, max_steps=25)
        if way == 'one_saves' and RANK:
            return {}
        result = job.evaluate(eval_fn)
    guesses = [float(each['guess'][0]) for each in job.predict(lambda: tf.data.Dataset.from_tensor_slices(x).batch(20))]
    exported = job.export_saved_model(os.path.join(folder_of(way), 'saved'), serving)
    exported = exported.decode() if isinstance(exported, bytes) else exported
    return {'step': int(result['global_step']), 'error': float(result['error']), 'w': float(job.get_variable_value('w')[0, 0]),
            'guesses': guesses[::9], 'rows': len(guesses), 'exported': os.path.relpath(exported, FOLDER)}


found = {}
for each in WAYS:
    with tf.Graph().as_default():
        before = len(waits)
        found[each] = trained(each)
        if found[each]:
            found[each]['waits'] = len(waits) - before
with open(os.path.join(FOLDER, 'rank_%d_of_%d.json' % (RANK, SIZE)), 'w') as stream:
    json.dump(found, stream)
