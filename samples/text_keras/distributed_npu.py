"""Predicts the next character of English text with tf.keras in graph mode, on several devices.

expected_npu.py with what ranks need: a share of the data for each, averaged
gradients, the same first weights, and one rank that tests and saves.

Data: the language reference which Python itself carries for help()
(pydoc_data.topics), about 0.4 million characters. The model sees 16 characters
and says the next one; the last tenth of the text is the test set. What always
saying the commonest character would score is printed as well.

    npu-shim launch --ranks 2 distributed_npu.py --steps=3000 --model_dir=/tmp/text
"""
import os
import tempfile

from absl import app
from absl import flags
import numpy as np
from pydoc_data import topics
import tensorflow.compat.v1 as tf
from npu_shim.npu_init import (
    close_session,
    get_rank_id,
    get_rank_size,
    npu_callbacks_append,
    npu_keras_optimizer,
    npu_unary_ops,
    set_keras_session_npu_config)

FLAGS = flags.FLAGS

flags.DEFINE_integer('steps', 3000, 'Training steps.')
flags.DEFINE_integer('batch_size', 128, 'Windows per step and rank.')
flags.DEFINE_integer('window', 16, 'Characters the model sees.')
flags.DEFINE_integer('hidden', 256, 'Width of the hidden layers.')
flags.DEFINE_float('learning_rate', 0.002, 'Learning rate of Adam.')
flags.DEFINE_float('dropout', 0.2, 'Share of hidden units dropped in training.')
flags.DEFINE_integer('seed', 1, 'Seed of the weights and of the order of the windows.')
flags.DEFINE_integer('log_every', 100, 'Log the loss every so many steps.')
flags.DEFINE_string('model_dir', None, 'Folder for the weights; a temporary one '
                    'when not given.')


def gelu(x):
    """The smooth relu of BERT: x times the normal probability below x, approximated."""
    return npu_unary_ops.gelu(x)


def load_text():
    """Returns the text as character codes 0 .. n-1, and n."""
    text = ' '.join(topics.topics[name] for name in sorted(topics.topics))
    text = ' '.join(text.lower().split())
    text = ''.join(c if ' ' <= c <= '~' else ' ' for c in text)
    alphabet = sorted(set(text))
    code = {c: i for i, c in enumerate(alphabet)}
    return np.array([code[c] for c in text], np.int32), len(alphabet)


def windows(codes, starts):
    """Returns the windows that begin at `starts` and the characters after them."""
    inputs = codes[starts[:, np.newaxis] + np.arange(FLAGS.window)]
    return inputs, codes[starts + FLAGS.window]


class LossLogger(tf.keras.callbacks.Callback):
    """Prints the loss of every n-th training step."""

    def on_train_batch_end(self, batch, logs=None):
        step = batch + 1
        if step % FLAGS.log_every == 0 or step == 1:
            print('step %d loss %.8f' % (step, logs['loss']), flush=True)


def build_model(alphabet_size):
    def glorot(layer):
        return tf.keras.initializers.glorot_uniform(seed=FLAGS.seed + layer)

    model = tf.keras.Sequential([
        tf.keras.layers.Embedding(alphabet_size, 16, input_length=FLAGS.window,
                                  embeddings_initializer=glorot(1)),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(FLAGS.hidden, activation=gelu, kernel_initializer=glorot(2)),
        tf.keras.layers.Dropout(FLAGS.dropout),
        tf.keras.layers.Dense(FLAGS.hidden, activation=gelu, kernel_initializer=glorot(3)),
        tf.keras.layers.Dense(alphabet_size, activation='softmax',
                              kernel_initializer=glorot(4)),
    ])
    model.compile(optimizer=npu_keras_optimizer(tf.keras.optimizers.Adam(FLAGS.learning_rate)),
                  loss='sparse_categorical_crossentropy', metrics=['accuracy'])
    return model


def train_and_test():
    random = np.random.RandomState(FLAGS.seed)
    model_dir = FLAGS.model_dir or tempfile.mkdtemp(prefix='text_keras_')

    codes, alphabet_size = load_text()
    split = len(codes) * 9 // 10
    train_starts = random.randint(0, split - FLAGS.window - 1,
                                  size=FLAGS.steps * FLAGS.batch_size * get_rank_size())
    train_starts = train_starts[get_rank_id()::get_rank_size()]
    train_inputs, train_labels = windows(codes, train_starts)
    test_inputs, test_labels = windows(codes, np.arange(split, len(codes) - FLAGS.window))

    model = build_model(alphabet_size)
    model.fit(train_inputs, train_labels, batch_size=FLAGS.batch_size, epochs=1,
              shuffle=False, verbose=0, callbacks=npu_callbacks_append([LossLogger()]))
    if get_rank_id() != 0:
        return
    loss, accuracy = model.evaluate(test_inputs, test_labels,
                                    batch_size=FLAGS.batch_size, verbose=0)
    os.makedirs(model_dir, exist_ok=True)
    model.save_weights(os.path.join(model_dir, 'weights.h5'))

    commonest = np.bincount(codes[:split]).argmax()
    print('test loss %.4f on %d characters' % (loss, len(test_labels)))
    print('commonest character alone would score %.4f' % np.mean(test_labels == commonest))
    print('accuracy %.4f' % accuracy)


def main(_):
    tf.disable_v2_behavior()
    tf.set_random_seed(FLAGS.seed + get_rank_id())  # each rank drops other units
    npu_keras_sess = set_keras_session_npu_config()
    train_and_test()
    close_session(npu_keras_sess)


if __name__ == '__main__':
    app.run(main)
