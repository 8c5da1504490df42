"""Tells drawn patterns apart with a CNN: three convolutions with batch normalization, and two dense layers.

python cnn.py --size=32 --batch_size=128
"""

import numpy as np
import tensorflow.compat.v1 as tf
import windows
from absl import app, flags

FLAGS = flags.FLAGS

flags.DEFINE_integer("size", 32, "Pixels of an image, each way.")
flags.DEFINE_integer("channels", 32, "Of the first convolution; the others have twice as many.")
flags.DEFINE_integer("hidden", 128, "Units of the first dense layer.")
flags.DEFINE_integer("batch_size", 128, "Images per step.")
flags.DEFINE_float("learning_rate", 0.0005, "Learning rate of Adam.")
flags.DEFINE_float("dropout", 0.3, "Share of hidden units dropped in training.")
flags.DEFINE_integer("seed", 1, "Seed of the images, the weights and the shuffling.")

CLASSES = 10


def load_data(count=1024):
    """Returns images, each the pattern of its class under noise, and labels."""
    random = np.random.RandomState(FLAGS.seed)
    patterns = random.normal(size=(CLASSES, FLAGS.size, FLAGS.size, 3))
    labels = random.randint(CLASSES, size=count).astype(np.int32)
    images = patterns[labels] + 2.0 * random.normal(size=(count, FLAGS.size, FLAGS.size, 3))
    return images.astype(np.float32), labels


def train_batches():
    """Returns the tensors of the next shuffled batch."""
    images, labels = load_data()
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(images), seed=FLAGS.seed).repeat()
    return tf.data.make_initializable_iterator(dataset.batch(FLAGS.batch_size, drop_remainder=True).prefetch(1))


def weights(name, shape):
    seed = FLAGS.seed + sum(map(ord, name))
    return tf.get_variable(name + "/kernel", shape, initializer=tf.glorot_uniform_initializer(seed=seed))


def parameter(name, size, value):
    return tf.get_variable(name, [size], initializer=tf.constant_initializer(value))


def conv(x, name, channels):
    """A convolution, batch normalization and relu."""
    kernel = weights(name, [3, 3, int(x.shape[-1]), channels])
    x = tf.nn.conv2d(x, kernel, strides=[1, 1, 1, 1], padding="SAME")
    mean, variance = tf.nn.moments(x, [0, 1, 2])
    x = tf.nn.batch_normalization(
        x, mean, variance, parameter(name + "/beta", channels, 0.0), parameter(name + "/gamma", channels, 1.0), 1e-3
    )
    return tf.nn.relu(x)


def pool(x):
    return tf.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")


def dense(x, name, size):
    return tf.matmul(x, weights(name, [int(x.shape[-1]), size])) + parameter(name + "/bias", size, 0.0)


def cnn(images):
    """Returns logits [batch, CLASSES]."""
    x = conv(images, "conv1", FLAGS.channels)
    x = pool(conv(x, "conv2", 2 * FLAGS.channels))
    x = pool(conv(x, "conv3", 2 * FLAGS.channels))
    x = tf.reshape(x, [FLAGS.batch_size, -1])
    x = tf.nn.relu(dense(x, "dense1", FLAGS.hidden))
    x = tf.nn.dropout(x, rate=FLAGS.dropout, seed=FLAGS.seed)
    return dense(x, "dense2", CLASSES)


def main(_):
    tf.disable_v2_behavior()
    tf.set_random_seed(FLAGS.seed)
    batches = train_batches()
    images, labels = batches.get_next()
    loss = tf.losses.sparse_softmax_cross_entropy(labels, cnn(images))
    train_op = tf.train.AdamOptimizer(FLAGS.learning_rate).minimize(loss)
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), batches.initializer])
        windows.train(sess, loss, train_op)


if __name__ == "__main__":
    app.run(main)
