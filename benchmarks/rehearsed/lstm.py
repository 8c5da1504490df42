"""Adds up marked numbers of a sequence with an LSTM, the textbook test of its memory.

python lstm.py --batch_size=128 --length=50 --hidden=256
"""

import numpy as np
import tensorflow.compat.v1 as tf
import windows
from absl import app, flags

FLAGS = flags.FLAGS

flags.DEFINE_integer("batch_size", 128, "Sequences per step.")
flags.DEFINE_integer("length", 50, "Numbers of a sequence.")
flags.DEFINE_integer("hidden", 256, "Units of the LSTM.")
flags.DEFINE_float("learning_rate", 0.001, "Learning rate of Adam.")
flags.DEFINE_float("dropout", 0.2, "Share of outputs dropped in training.")
flags.DEFINE_integer("seed", 1, "Seed of the sequences, the weights and the shuffling.")


def load_data(count=1024):
    """Returns sequences of (number, mark), and the sums of the marked numbers."""
    random = np.random.RandomState(FLAGS.seed)
    numbers = random.uniform(size=(count, FLAGS.length))
    marks = random.uniform(size=numbers.shape) < 2.0 / FLAGS.length
    return np.stack([numbers, marks], axis=2).astype(np.float32), (numbers * marks).sum(axis=1).astype(np.float32)


def train_batches():
    """Returns the iterator over shuffled batches."""
    dataset = tf.data.Dataset.from_tensor_slices(load_data())
    dataset = dataset.shuffle(1024, seed=FLAGS.seed).repeat()
    return tf.data.make_initializable_iterator(dataset.batch(FLAGS.batch_size, drop_remainder=True).prefetch(1))


def parameter(name, shape):
    seed = FLAGS.seed + sum(map(ord, name))
    return tf.get_variable(name, shape, initializer=tf.glorot_uniform_initializer(seed=seed))


def lstm(inputs, name):
    """Outputs [length, batch, hidden] of inputs [length, batch, size]."""
    size = int(inputs.shape[-1])
    with tf.variable_scope(name):
        kernel = parameter("kernel", [size + FLAGS.hidden, 4 * FLAGS.hidden])
        bias = tf.get_variable("bias", [4 * FLAGS.hidden], initializer=tf.zeros_initializer())

    def step(state, x):
        memory, output = state
        gates = tf.matmul(tf.concat([x, output], axis=1), kernel) + bias
        into, new, forget, out = tf.split(gates, 4, axis=1)
        memory = memory * tf.sigmoid(forget + 1.0) + tf.sigmoid(into) * tf.tanh(new)
        return memory, tf.tanh(memory) * tf.sigmoid(out)

    start = tf.zeros([FLAGS.batch_size, FLAGS.hidden])
    return tf.scan(step, inputs, initializer=(start, start))[1]


def main(_):
    tf.disable_v2_behavior()
    tf.set_random_seed(FLAGS.seed)
    batches = train_batches()
    sequences, sums = batches.get_next()
    outputs = lstm(tf.transpose(sequences, [1, 0, 2]), "lstm1")
    outputs = lstm(tf.nn.dropout(outputs, rate=FLAGS.dropout, seed=FLAGS.seed), "lstm2")
    guesses = tf.squeeze(tf.matmul(outputs[-1], parameter("guess", [FLAGS.hidden, 1])), axis=1)
    loss = tf.reduce_mean(tf.square(guesses - sums))
    train_op = tf.train.AdamOptimizer(FLAGS.learning_rate).minimize(loss)
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), batches.initializer])
        windows.train(sess, loss, train_op)


if __name__ == "__main__":
    app.run(main)
