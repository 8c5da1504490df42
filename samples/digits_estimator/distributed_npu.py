"""Reads handwritten digits with a small CNN and tf.estimator, on several devices.

expected_npu.py with what ranks need: a share of the data for each, averaged
gradients, the same first weights, and one rank that tests and exports.

Data: the 1,797 real 8x8 images which scikit-learn carries; four fifths are
trained on, the rest is the test set.

    npu-shim launch --ranks 2 distributed_npu.py --steps=400 --model_dir=/tmp/digits
"""
import os
import tempfile

from absl import app
from absl import flags
import numpy as np
from sklearn.datasets import load_digits
import tensorflow.compat.v1 as tf
from npu_shim.npu_init import (
    NPUEstimator,
    NPURunConfig,
    get_rank_id,
    get_rank_size,
    npu_allreduce,
    npu_distributed_optimizer_wrapper,
    npu_hooks_append,
    npu_ops)

FLAGS = flags.FLAGS

flags.DEFINE_integer('steps', 400, 'Training steps.')
flags.DEFINE_integer('batch_size', 64, 'Images per step and rank.')
flags.DEFINE_float('learning_rate', 0.002, 'Learning rate of Adam.')
flags.DEFINE_float('dropout', 0.3, 'Share of hidden units dropped in training.')
flags.DEFINE_integer('seed', 1, 'Seed of the split, the weights and the shuffling.')
flags.DEFINE_integer('log_every', 20, 'Log the loss every so many steps.')
flags.DEFINE_string('model_dir', None, 'Folder for checkpoints and the exported '
                    'model; a temporary one when not given.')


def load_data():
    """Returns (train images, train labels), (test images, test labels)."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[..., np.newaxis]
    labels = digits.target.astype(np.int32)
    order = np.random.RandomState(FLAGS.seed).permutation(len(images))
    train, test = np.split(order, [len(order) * 4 // 5])
    return (images[train], labels[train]), (images[test], labels[test])


def train_input_fn():
    (images, labels), _ = load_data()
    dataset = tf.data.Dataset.from_tensor_slices(({'images': images}, labels))
    dataset = dataset.shuffle(len(images), seed=FLAGS.seed).repeat()
    # All ranks shuffle alike, so that together they see each image once.
    dataset = dataset.shard(get_rank_size(), get_rank_id())
    dataset = dataset.batch(FLAGS.batch_size, drop_remainder=True)
    return dataset.prefetch(1)


def eval_input_fn():
    _, (images, labels) = load_data()
    dataset = tf.data.Dataset.from_tensor_slices(({'images': images}, labels))
    return dataset.batch(FLAGS.batch_size)


def predict_input_fn():
    _, (images, _) = load_data()
    return tf.data.Dataset.from_tensor_slices({'images': images}).batch(FLAGS.batch_size)


def serving_input_receiver_fn():
    images = tf.placeholder(tf.float32, [None, 8, 8, 1], name='images')
    return tf.estimator.export.ServingInputReceiver({'images': images}, {'images': images})


def glorot(layer):
    """Initial weights of the n-th layer."""
    return tf.glorot_uniform_initializer(seed=FLAGS.seed + layer)


def cnn(images, training):
    """Two convolutions and two dense layers; returns logits [batch, 10]."""
    x = tf.layers.conv2d(images, 16, 3, padding='same', activation=tf.nn.relu,
                         kernel_initializer=glorot(1))
    x = tf.layers.conv2d(x, 32, 3, padding='same', activation=tf.nn.relu,
                         kernel_initializer=glorot(2))
    x = tf.layers.max_pooling2d(x, 2, 2)
    x = tf.layers.flatten(x)
    x = tf.layers.dense(x, 64, activation=tf.nn.relu, kernel_initializer=glorot(3))
    x = npu_ops.dropout(x, keep_prob=1 - FLAGS.dropout) if training else x
    return tf.layers.dense(x, 10, kernel_initializer=glorot(4))


def model_fn(features, labels, mode):
    logits = cnn(features['images'], training=mode == tf.estimator.ModeKeys.TRAIN)
    classes = tf.argmax(logits, axis=1)

    if mode == tf.estimator.ModeKeys.PREDICT:
        predictions = {'class': classes, 'probabilities': tf.nn.softmax(logits)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)

    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)

    if mode == tf.estimator.ModeKeys.EVAL:
        accuracy = tf.metrics.accuracy(labels, classes)
        return tf.estimator.EstimatorSpec(mode, loss=loss,
                                          eval_metric_ops={'accuracy': accuracy})

    global_step = tf.train.get_global_step()
    optimizer = npu_distributed_optimizer_wrapper(tf.train.AdamOptimizer(FLAGS.learning_rate))
    train_op = optimizer.minimize(loss, global_step=global_step)
    # Read after the update: without this the logged step may be one behind.
    with tf.control_dependencies([train_op]):
        step = global_step.read_value()
    log_loss = tf.train.LoggingTensorHook(
        {'step': step, 'loss': npu_allreduce(loss)}, every_n_iter=FLAGS.log_every,
        formatter=lambda values: 'step %d loss %.8f' % (values['step'], values['loss']))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op,
                                      training_hooks=[log_loss])


def train_and_test():
    model_dir = FLAGS.model_dir or tempfile.mkdtemp(prefix='digits_estimator_')
    if get_rank_id() != 0:  # a folder for each rank; that of rank 0 is the job's
        model_dir = os.path.join(model_dir, 'rank_%d' % get_rank_id())
    session_config = tf.ConfigProto(allow_soft_placement=True)
    run_config = NPURunConfig(
        model_dir=model_dir,
        tf_random_seed=FLAGS.seed,
        save_summary_steps=100,
        save_checkpoints_steps=max(FLAGS.steps, 1),
        session_config=session_config)
    classifier = NPUEstimator(model_fn=model_fn, config=run_config)

    classifier.train(input_fn=train_input_fn, hooks=npu_hooks_append(), max_steps=FLAGS.steps)
    if get_rank_id() != 0:
        return
    metrics = classifier.evaluate(input_fn=eval_input_fn)

    predictions = list(classifier.predict(input_fn=predict_input_fn))
    _, (_, labels) = load_data()
    right = sum(int(p['class']) == int(label) for p, label in zip(predictions, labels))
    print('predicted %d of %d test images, %d right' % (len(predictions), len(labels), right))

    exported = classifier.export_saved_model(os.path.join(model_dir, 'export'),
                                             serving_input_receiver_fn)
    print('exported to %s' % tf.compat.as_str(exported))
    print('accuracy %.4f' % metrics['accuracy'])


def main(_):
    train_and_test()


if __name__ == '__main__':
    tf.logging.set_verbosity(tf.logging.INFO)
    app.run(main)
