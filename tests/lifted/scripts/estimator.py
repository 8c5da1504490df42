"""Logistic regression with an Estimator: tf.layers, tf.losses, tf.metrics, an input function with an iterator."""
import json
import tempfile

import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.ERROR)
FEATURES = np.array([[0., 1.], [1., 0.], [2., 1.], [1., 3.]], np.float32)
LABELS = np.array([0, 1, 1, 0], np.int64)


class Count(tf.train.SessionRunHook):
    runs = 0

    def after_run(self, run_context, run_values):
        Count.runs += 1


def input_fn():
    dataset = tf.data.Dataset.from_tensor_slices((FEATURES, LABELS)).repeat(10).batch(4)
    return dataset.make_one_shot_iterator().get_next()


def model_fn(features, labels, mode, params):
    logits = tf.layers.dense(features, 2, kernel_initializer=tf.zeros_initializer(), name='logits')
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={'class': tf.argmax(logits, 1)})
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {'accuracy': tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = tf.train.GradientDescentOptimizer(params['rate'])
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    with tempfile.TemporaryDirectory() as folder:
        config = tf.estimator.RunConfig(model_dir=folder, save_checkpoints_steps=100)
        estimator = tf.estimator.Estimator(model_fn, config=config, params={'rate': 0.5})
        estimator.train(input_fn, hooks=[Count()])
        found = estimator.evaluate(input_fn)
        kernel = estimator.get_variable_value('logits/kernel')
    print(json.dumps({'loss': float(found['loss']), 'accuracy': float(found['accuracy']),
                      'step': int(found['global_step']), 'kernel': kernel.tolist(), 'runs': Count.runs}))


if __name__ == '__main__':
    main()
