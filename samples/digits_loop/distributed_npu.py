"""Reads handwritten digits with a small CNN and a training loop of its own, in TensorFlow 2, on several devices.

expected_npu.py with what ranks need: a share of the data for each, averaged
gradients, the same first weights, and one rank that tests and saves.

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
import tensorflow as tf
import npu_shim.npu_device as npu

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


class Net(tf.keras.Model):
    """Two convolutions and a hidden layer."""

    def __init__(self):
        super().__init__()

        def glorot(layer):
            return tf.keras.initializers.GlorotUniform(seed=FLAGS.seed + layer)

        self.conv1 = tf.keras.layers.Conv2D(16, 3, padding='same', activation='relu',
                                            kernel_initializer=glorot(1))
        self.pool = tf.keras.layers.MaxPool2D()
        self.conv2 = tf.keras.layers.Conv2D(32, 3, padding='same', activation='relu',
                                            kernel_initializer=glorot(2))
        self.flatten = tf.keras.layers.Flatten()
        self.hidden = tf.keras.layers.Dense(64, activation='relu',
                                            kernel_initializer=glorot(3))
        self.logits = tf.keras.layers.Dense(10, kernel_initializer=glorot(4))

    def call(self, images, training=False):
        x = self.flatten(self.conv2(self.pool(self.conv1(images))))
        x = self.hidden(x)
        if training and FLAGS.dropout:
            x = tf.nn.dropout(x, rate=FLAGS.dropout, seed=FLAGS.seed)
        return self.logits(x)


def main(_):
    tf.random.set_seed(FLAGS.seed)
    model_dir = FLAGS.model_dir or tempfile.mkdtemp(prefix='digits_loop_')
    ranks = npu.open().as_default()
    (images, labels), (test_images, test_labels) = load_data()
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(images), seed=FLAGS.seed).repeat()
    dataset, batch_size = npu.distribute.shard_and_rebatch_dataset(
        dataset, FLAGS.batch_size * ranks.workers_num)
    dataset = dataset.batch(batch_size, drop_remainder=True).take(FLAGS.steps)

    model = Net()
    model(images[:1])  # makes its variables
    npu.distribute.broadcast(model.trainable_variables)
    optimizer = tf.keras.optimizers.Adam(FLAGS.learning_rate)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        gradients = npu.distribute.all_reduce(gradients)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return npu.distribute.all_reduce(loss)

    for step, (batch, classes) in enumerate(dataset, 1):
        loss = train_step(batch, classes)
        if step % FLAGS.log_every == 0 or step == 1:
            print('step %d loss %.8f' % (step, loss.numpy()), flush=True)

    if ranks.worker_id != 0:
        return
    predicted = np.argmax(model(test_images).numpy(), axis=1)
    os.makedirs(model_dir, exist_ok=True)
    model.save_weights(os.path.join(model_dir, 'model.weights.h5'))
    print('accuracy %.4f' % np.mean(predicted == test_labels))


if __name__ == '__main__':
    app.run(main)
