"""Reads handwritten digits with float16 activations and a loss scale that adapts itself.

The gradients of float16 activations vanish when they are small and overflow
when they are large. The loss is multiplied by a scale, and the gradients are
divided by it: the scale starts far too high here, so that the first steps
overflow and are skipped; each halves it, until the gradients fit. Later it
grows again, a doubling after every --grow_after good steps.

    python train.py --steps=300
"""
from absl import app
from absl import flags
import numpy as np
from sklearn.datasets import load_digits
import tensorflow.compat.v1 as tf

import npu_shim
from npu_shim.npu_init import ExponentialUpdateLossScaleManager, NPULossScaleOptimizer

FLAGS = flags.FLAGS

flags.DEFINE_integer('steps', 300, 'Training steps, skipped ones included.')
flags.DEFINE_integer('batch_size', 64, 'Images per step.')
flags.DEFINE_float('learning_rate', 0.1, 'Learning rate of momentum.')
flags.DEFINE_float('loss_scale', 2.0 ** 24, 'The first loss scale.')
flags.DEFINE_integer('grow_after', 100, 'Good steps after which the scale doubles.')
flags.DEFINE_integer('seed', 1, 'Seed of the split, the weights and the shuffling.')


def load_data():
    """Returns (train images, train labels), (test images, test labels); images are rows of 64."""
    digits = load_digits()
    images = (digits.data / 16.0).astype(np.float32)
    labels = digits.target.astype(np.int32)
    order = np.random.RandomState(FLAGS.seed).permutation(len(images))
    train, test = np.split(order, [len(order) * 4 // 5])
    return (images[train], labels[train]), (images[test], labels[test])


def dense(x, name, size):
    """A dense layer whose weights are float32 and whose arithmetic is float16."""
    with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
        kernel = tf.get_variable('kernel', [int(x.shape[-1]), size],
                                 initializer=tf.glorot_uniform_initializer(seed=FLAGS.seed))
        bias = tf.get_variable('bias', [size], initializer=tf.zeros_initializer())
    return tf.matmul(x, tf.cast(kernel, tf.float16)) + tf.cast(bias, tf.float16)


def mlp(images):
    """Two layers; returns logits [batch, 10] in float32."""
    x = tf.nn.relu(dense(tf.cast(images, tf.float16), 'dense1', 64))
    return tf.cast(dense(x, 'dense2', 10), tf.float32)


def main(_):
    tf.disable_v2_behavior()
    (train_images, train_labels), (test_images, test_labels) = load_data()
    dataset = tf.data.Dataset.from_tensor_slices((train_images, train_labels))
    dataset = dataset.shuffle(len(train_images), seed=FLAGS.seed).repeat()
    dataset = dataset.batch(FLAGS.batch_size, drop_remainder=True)
    images, labels = tf.data.make_one_shot_iterator(dataset).get_next()

    loss = tf.losses.sparse_softmax_cross_entropy(labels, mlp(images))
    manager = ExponentialUpdateLossScaleManager(
        FLAGS.loss_scale, incr_every_n_steps=FLAGS.grow_after, decr_every_n_nan_or_inf=1,
        decr_ratio=0.5)
    optimizer = NPULossScaleOptimizer(tf.train.MomentumOptimizer(FLAGS.learning_rate, 0.9), manager)
    global_step = tf.train.get_or_create_global_step()
    train_op = optimizer.minimize(loss, global_step=global_step)

    test_classes = tf.argmax(mlp(tf.constant(test_images)), axis=1)
    with tf.Session(config=npu_shim.session_config()) as sess:
        sess.run(tf.global_variables_initializer())
        before = FLAGS.loss_scale
        for step in range(1, FLAGS.steps + 1):
            _, loss_value = sess.run([train_op, loss])
            scale = sess.run(manager.get_loss_scale())
            if scale != before:
                print('step %d loss %.6f scale %.0f -> %.0f' % (step, loss_value, before, scale), flush=True)
                before = scale
        right = np.mean(sess.run(test_classes) == test_labels)
        print('%d steps, %d of them skipped' % (FLAGS.steps, FLAGS.steps - sess.run(global_step)))
        print('accuracy %.4f' % right)


if __name__ == '__main__':
    app.run(main)
