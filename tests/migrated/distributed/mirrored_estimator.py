"""An Estimator that trains on all GPUs of a machine."""
import json
import sys

import numpy as np
import tensorflow.compat.v1 as tf

x = np.linspace(-1, 1, 64).astype(np.float32).reshape(64, 1)
y = 3 * x - 1


def model_fn(features, labels, mode, params):
    w = tf.get_variable('w', [1, 1], initializer=tf.zeros_initializer())
    b = tf.get_variable('b', [1], initializer=tf.zeros_initializer())
    guess = tf.matmul(features, w) + b
    loss = tf.reduce_mean(tf.square(guess - labels))
    train_op = None
    if mode == tf.estimator.ModeKeys.TRAIN:
        optimizer = tf.train.MomentumOptimizer(params['rate'], momentum=0.5)
        train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    metrics = {'error': tf.metrics.mean_absolute_error(labels, guess)}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def train_input_fn():
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(16)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(20)


def main(_):
    strategy = tf.distribute.MirroredStrategy()
    config = tf.estimator.RunConfig(
        model_dir=sys.argv[1],
        train_distribute=strategy,
        eval_distribute=strategy,
        tf_random_seed=1)
    estimator = tf.estimator.Estimator(model_fn, config=config, params={'rate': 0.1})
    estimator.train(train_input_fn, hooks=[tf.train.StepCounterHook()], steps=20)
    result = estimator.evaluate(eval_input_fn)
    print(json.dumps({'step': int(result['global_step']), 'error': float(result['error']),
                      'w': estimator.get_variable_value('w').tolist(), 'b': estimator.get_variable_value('b').tolist()}))


if __name__ == '__main__':
    tf.disable_v2_behavior()
    tf.app.run(main)
