"""Reads handwritten digits with a small CNN and a plain tf.Session loop, on several devices.

expected_npu.py with what ranks need: a share of the data for each, averaged
gradients, the same first weights, and one rank that saves and tests.

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
    get_rank_id,
    get_rank_size,
    hccl_ops,
    npu_allreduce,
    npu_config_proto,
    npu_distributed_optimizer_wrapper,
    npu_ops)

FLAGS = flags.FLAGS

flags.DEFINE_integer('steps', 400, 'Training steps.')
flags.DEFINE_integer('batch_size', 64, 'Images per step and rank.')
flags.DEFINE_float('learning_rate', 0.002, 'Learning rate of Adam.')
flags.DEFINE_float('dropout', 0.3, 'Share of hidden units dropped in training.')
flags.DEFINE_integer('seed', 1, 'Seed of the split, the weights and the shuffling.')
flags.DEFINE_integer('log_every', 20, 'Log the loss every so many steps.')
flags.DEFINE_string('model_dir', None, 'Folder for checkpoints; a temporary one '
                    'when not given.')


def load_data():
    """Returns (train images, train labels), (test images, test labels)."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[..., np.newaxis]
    labels = digits.target.astype(np.int32)
    order = np.random.RandomState(FLAGS.seed).permutation(len(images))
    train, test = np.split(order, [len(order) * 4 // 5])
    return (images[train], labels[train]), (images[test], labels[test])


def train_batches(images, labels):
    """Returns the tensors of this rank's share of the next shuffled training batch."""
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(images), seed=FLAGS.seed).repeat()
    # All ranks shuffle alike, so that together they see each image once.
    dataset = dataset.shard(get_rank_size(), get_rank_id())
    dataset = dataset.batch(FLAGS.batch_size, drop_remainder=True).prefetch(1)
    return tf.data.make_one_shot_iterator(dataset).get_next()


def weights(name, shape):
    """Returns a kernel of the given shape; its seed follows from its name."""
    seed = FLAGS.seed + sum(map(ord, name))
    return tf.get_variable(name + '/kernel', shape,
                           initializer=tf.glorot_uniform_initializer(seed=seed))


def bias(name, size):
    return tf.get_variable(name + '/bias', [size], initializer=tf.zeros_initializer())


def conv(x, name, channels):
    kernel = weights(name, [3, 3, int(x.shape[-1]), channels])
    x = tf.nn.conv2d(x, kernel, strides=[1, 1, 1, 1], padding='SAME')
    return tf.nn.relu(tf.nn.bias_add(x, bias(name, channels)))


def dense(x, name, size):
    return tf.matmul(x, weights(name, [int(x.shape[-1]), size])) + bias(name, size)


def cnn(images, training):
    """Two convolutions and two dense layers; returns logits [batch, 10]."""
    with tf.variable_scope('cnn', reuse=tf.AUTO_REUSE):
        x = conv(images, 'conv1', 16)
        x = conv(x, 'conv2', 32)
        x = tf.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding='SAME')
        x = tf.reshape(x, [-1, 4 * 4 * 32])
        x = tf.nn.relu(dense(x, 'dense1', 64))
        if training:
            x = npu_ops.dropout(x, keep_prob=1 - FLAGS.dropout)
        return dense(x, 'dense2', 10)


def train_and_test():
    tf.set_random_seed(FLAGS.seed)
    model_dir = FLAGS.model_dir or tempfile.mkdtemp(prefix='digits_session_')
    (train_images, train_labels), (test_images, test_labels) = load_data()

    with tf.device('/cpu:0'):
        images, labels = train_batches(train_images, train_labels)

    with tf.device('/cpu:0'):
        logits = cnn(images, training=True)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        optimizer = npu_distributed_optimizer_wrapper(tf.train.AdamOptimizer(FLAGS.learning_rate))
        train_op = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
        mean_loss = npu_allreduce(loss)

        eval_images = tf.placeholder(tf.float32, [None, 8, 8, 1], name='images')
        eval_classes = tf.argmax(cnn(eval_images, training=False), axis=1)

    # Every variable, also those of the optimizer; they take rank 0's values when this is run.
    broadcast = hccl_ops.broadcast(tf.global_variables(), 0)
    saver = tf.train.Saver(max_to_keep=1)
    config = tf.ConfigProto(allow_soft_placement=True, log_device_placement=False)
    config.gpu_options.allow_growth = True

    with tf.Session(config=npu_config_proto(config_proto=config)) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(broadcast)
        for step in range(1, FLAGS.steps + 1):
            _, loss_value = sess.run([train_op, mean_loss])
            if get_rank_id() == 0 and (step % FLAGS.log_every == 0 or step == 1):
                print('step %d loss %.8f' % (step, loss_value), flush=True)
        if get_rank_id() == 0:
            path = saver.save(sess, os.path.join(model_dir, 'model.ckpt'), global_step=FLAGS.steps)
    if get_rank_id() != 0:
        return

    # The test set goes through the saved weights, as it would in a later run.
    with tf.Session(config=npu_config_proto(config_proto=config)) as sess:
        saver.restore(sess, path)
        classes = []
        for start in range(0, len(test_images), FLAGS.batch_size):
            batch = test_images[start:start + FLAGS.batch_size]
            classes.extend(sess.run(eval_classes, feed_dict={eval_images: batch}))

    right = np.equal(classes, test_labels)
    print('saved to %s, %d of %d test images right' % (path, right.sum(), len(right)))
    print('accuracy %.4f' % right.mean())


def main(_):
    tf.disable_v2_behavior()
    train_and_test()


if __name__ == '__main__':
    app.run(main)
