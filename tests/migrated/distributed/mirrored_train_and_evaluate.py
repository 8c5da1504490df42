"""train_and_evaluate with a strategy that a helper chooses."""
import json
import sys

import numpy as np
import tensorflow.compat.v1 as tf

x = np.linspace(-1, 1, 64).astype(np.float32).reshape(64, 1)


def get_strategy(num_gpus):
    if num_gpus == 0:
        return tf.distribute.OneDeviceStrategy('device:CPU:0')
    if num_gpus > 1:
        return tf.distribute.MirroredStrategy(['device:GPU:%d' % i for i in range(num_gpus)])
    return None


def model_fn(features, labels, mode):
    guess = tf.layers.dense(features, 1, kernel_initializer=tf.ones_initializer())
    loss = tf.losses.mean_squared_error(labels, guess)
    optimizer = tf.train.AdamOptimizer(0.05)
    gradients = optimizer.compute_gradients(loss)
    gradients = [(tf.clip_by_norm(g, 1.0), v) for g, v in gradients]
    train_op = optimizer.apply_gradients(gradients, tf.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def train_input_fn():
    return tf.data.Dataset.from_tensor_slices((x, 2 * x)).repeat().batch(8)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices((x, 2 * x)).batch(8)


def main(_):
    distribution = get_strategy(0)
    estimator = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(
        model_dir=sys.argv[1], train_distribute=distribution))
    result, _ = tf.estimator.train_and_evaluate(
        estimator, tf.estimator.TrainSpec(train_input_fn, max_steps=12),
        tf.estimator.EvalSpec(eval_input_fn, steps=None))
    print(json.dumps({'loss': float(result['loss']), 'step': int(result['global_step'])}))


if __name__ == '__main__':
    tf.disable_v2_behavior()
    tf.app.run(main)
