"""Fine-tuning in the style of language models: an input_fn made by a builder, an own optimizer, a run config that is passed on."""
import collections
import json
import re
import sys

import numpy as np
import tensorflow.compat.v1 as tf

Job = collections.namedtuple('Job', 'words labels')
random = np.random.RandomState(5)
WORDS = random.randint(0, 20, [320, 6]).astype(np.int32)
JOB = Job(WORDS, (WORDS.sum(axis=1) % 2).astype(np.int32))


class AdamWithDecay(tf.train.Optimizer):
    """Adam without bias correction, and with decay of the weights."""

    def __init__(self, learning_rate, decay=0.0, skip=(), name='AdamWithDecay'):
        super(AdamWithDecay, self).__init__(False, name)
        self.learning_rate, self.decay, self.skip = learning_rate, decay, skip

    def _create_slots(self, var_list):
        for var in var_list:
            self._zeros_slot(var, 'm', self._name)
            self._zeros_slot(var, 'v', self._name)

    def _resource_apply_dense(self, grad, var):
        m, v = self.get_slot(var, 'm'), self.get_slot(var, 'v')
        next_m, next_v = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * tf.square(grad)
        update = next_m / (tf.sqrt(next_v) + 1e-6)
        if not any(re.search(word, var.op.name) for word in self.skip):
            update += self.decay * var
        return tf.group(var.assign_sub(self.learning_rate * update), m.assign(next_m), v.assign(next_v))

    def _apply_dense(self, grad, var):
        return self._resource_apply_dense(grad, var)

    def _resource_apply_sparse(self, grad, var, indices):
        return self._resource_apply_dense(tf.scatter_nd(indices[:, None], grad, tf.shape(var, out_type=indices.dtype)), var)

    def _apply_sparse(self, grad, var):
        return self._resource_apply_dense(tf.convert_to_tensor(grad), var)


def input_fn_builder(job, is_training):
    def input_fn(params):
        data = tf.data.Dataset.from_tensor_slices({'words': job.words, 'labels': job.labels})
        if is_training:
            data = data.repeat()
            data = data.shuffle(buffer_size=50, seed=3)
        return data.map(lambda row: {'words': tf.cast(row['words'], tf.int64), 'labels': row['labels']}).batch(
            params['batch_size'] if is_training else 40, drop_remainder=is_training)

    return input_fn


def model_fn_builder(learning_rate, num_train_steps):
    def model_fn(features, labels, mode, params):
        table = tf.get_variable('table', [20, 8], initializer=tf.truncated_normal_initializer(stddev=0.5, seed=1))
        pooled = tf.reduce_mean(tf.nn.embedding_lookup(table, features['words']), axis=1)
        hidden = tf.layers.dense(pooled, 12, tf.tanh, kernel_initializer=tf.glorot_uniform_initializer(seed=2))
        logits = tf.layers.dense(hidden, 2, kernel_initializer=tf.glorot_uniform_initializer(seed=3))
        per_example = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=features['labels'], logits=logits)
        loss = tf.reduce_mean(per_example)
        train_op = None
        if mode == tf.estimator.ModeKeys.TRAIN:
            step = tf.train.get_or_create_global_step()
            rate = tf.train.polynomial_decay(learning_rate, step, num_train_steps, end_learning_rate=0.0)
            optimizer = AdamWithDecay(rate, decay=0.01, skip=['bias'])
            train_op = optimizer.minimize(loss, global_step=step)
        found = {'accuracy': tf.metrics.accuracy(features['labels'], tf.argmax(logits, axis=-1)),
                 'mean_loss': tf.metrics.mean(per_example)}
        return tf.estimator.EstimatorSpec(mode=mode, loss=loss, train_op=train_op, eval_metric_ops=found)

    return model_fn


def main(_):
    strategy = tf.distribute.MirroredStrategy()
    run_config = tf.estimator.RunConfig(
        model_dir=sys.argv[1],
        save_checkpoints_steps=20,
        keep_checkpoint_max=2,
        train_distribute=strategy)
    estimator = tf.estimator.Estimator(
        model_fn=model_fn_builder(0.01, 40),
        config=run_config,
        params={'batch_size': 8})
    estimator.train(input_fn=input_fn_builder(JOB, True), max_steps=40)
    result = estimator.evaluate(input_fn=input_fn_builder(JOB, False))
    print(json.dumps({'step': int(result['global_step']), 'mean_loss': float(result['mean_loss']),
                      'accuracy': float(result['accuracy']), 'table': estimator.get_variable_value('table').tolist(),
                      'kernel': estimator.get_variable_value('dense/kernel').tolist()}))


if __name__ == '__main__':
    tf.disable_v2_behavior()
    tf.app.run(main)
