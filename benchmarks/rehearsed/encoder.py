"""Fills gaps in token sequences with a BERT-like encoder: self-attention, gelu, layer normalization, dropout.

python encoder.py --batch_size=32 --length=128 --hidden=256
"""

import numpy as np
import tensorflow.compat.v1 as tf
import windows
from absl import app, flags

FLAGS = flags.FLAGS

flags.DEFINE_integer("batch_size", 32, "Sequences per step.")
flags.DEFINE_integer("length", 128, "Tokens of a sequence.")
flags.DEFINE_integer("hidden", 256, "Width of a layer.")
flags.DEFINE_integer("heads", 4, "Of the attention.")
flags.DEFINE_integer("layers", 2, "Of the encoder.")
flags.DEFINE_float("learning_rate", 0.001, "Learning rate of Adam.")
flags.DEFINE_float("dropout", 0.1, "Share of units dropped in training.")
flags.DEFINE_integer("seed", 1, "Seed of the sequences, the weights and the shuffling.")

TOKENS = 128
GAP = 0


def load_data(count=512):
    """Returns sequences that count up by a step of their own, with gaps, and without."""
    random = np.random.RandomState(FLAGS.seed)
    first, by = random.randint(TOKENS - 1, size=(2, count, 1))
    whole = 1 + (first + by * np.arange(FLAGS.length)) % (TOKENS - 1)
    gaps = random.uniform(size=whole.shape) < 0.15
    return np.where(gaps, GAP, whole).astype(np.int32), whole.astype(np.int32)


def train_batches():
    """Returns the iterator over shuffled batches."""
    dataset = tf.data.Dataset.from_tensor_slices(load_data())
    dataset = dataset.shuffle(512, seed=FLAGS.seed).repeat()
    return tf.data.make_initializable_iterator(dataset.batch(FLAGS.batch_size, drop_remainder=True).prefetch(1))


def gelu(x):
    """The smooth relu of BERT: x times the normal probability below x, approximated."""
    cdf = 0.5 * (1.0 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3))))
    return x * cdf


def parameter(name, shape):
    seed = FLAGS.seed + sum(map(ord, name))
    return tf.get_variable(name, shape, initializer=tf.truncated_normal_initializer(stddev=0.02, seed=seed))


def dense(x, name, size):
    kernel = parameter(name + "/kernel", [int(x.shape[-1]), size])
    return tf.matmul(x, kernel) + tf.get_variable(name + "/bias", [size], initializer=tf.zeros_initializer())


def dropout(x, name):
    return tf.nn.dropout(x, rate=FLAGS.dropout, seed=FLAGS.seed + sum(map(ord, name)))


def normalized(x, name):
    """Layer normalization."""
    size = int(x.shape[-1])
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    gamma = tf.get_variable(name + "/gamma", [size], initializer=tf.ones_initializer())
    beta = tf.get_variable(name + "/beta", [size], initializer=tf.zeros_initializer())
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-12)


def attention(x, name):
    """Self-attention of x [batch * length, hidden], by heads."""

    def by_heads(part):
        split = tf.reshape(
            dense(x, name + "/" + part, FLAGS.hidden),
            [FLAGS.batch_size, FLAGS.length, FLAGS.heads, FLAGS.hidden // FLAGS.heads],
        )
        return tf.transpose(split, [0, 2, 1, 3])

    scores = tf.matmul(by_heads("query"), by_heads("key"), transpose_b=True)
    shares = tf.nn.softmax(scores / np.sqrt(FLAGS.hidden // FLAGS.heads))
    mixed = tf.matmul(dropout(shares, name + "/shares"), by_heads("value"))
    return tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [-1, FLAGS.hidden])


def encoder(tokens):
    """Returns logits [batch * length, TOKENS]."""
    x = tf.gather(parameter("tokens", [TOKENS, FLAGS.hidden]), tokens)
    x += parameter("places", [FLAGS.length, FLAGS.hidden])
    x = dropout(normalized(tf.reshape(x, [-1, FLAGS.hidden]), "embedded"), "embedded")
    for number in range(FLAGS.layers):
        name = f"layer{number}"
        seen = dropout(dense(attention(x, name), name + "/seen", FLAGS.hidden), name + "/seen")
        x = normalized(x + seen, name + "/normalized1")
        wide = dense(x, name + "/wide", 4 * FLAGS.hidden)
        thought = dropout(dense(gelu(wide), name + "/thought", FLAGS.hidden), name + "/thought")
        x = normalized(x + thought, name + "/normalized2")
    return dense(x, "logits", TOKENS)


def main(_):
    tf.disable_v2_behavior()
    tf.set_random_seed(FLAGS.seed)
    batches = train_batches()
    tokens, whole = batches.get_next()
    labels = tf.reshape(whole, [-1])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=encoder(tokens)))
    train_op = tf.train.AdamOptimizer(FLAGS.learning_rate).minimize(loss)
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), batches.initializer])
        windows.train(sess, loss, train_op)


if __name__ == "__main__":
    app.run(main)
