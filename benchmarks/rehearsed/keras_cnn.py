"""Tells drawn patterns apart with a CNN of Keras, in fit or in a loop over a gradient tape.

python keras_cnn.py --batch_size=32 --loop
"""

import numpy as np
import tensorflow as tf
import windows
from absl import app, flags

FLAGS = flags.FLAGS

flags.DEFINE_integer("size", 32, "Pixels of an image, each way.")
flags.DEFINE_integer("channels", 32, "Of the first convolution; the others have twice as many.")
flags.DEFINE_integer("hidden", 128, "Units of the first dense layer.")
flags.DEFINE_integer("batch_size", 32, "Images per step.")
flags.DEFINE_bool("loop", False, "Trains in a loop of its own.")

CLASSES = 10


def batches(count=512):
    random = np.random.RandomState(1)
    images = random.normal(size=(count, FLAGS.size, FLAGS.size, 3)).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((images, random.randint(CLASSES, size=count).astype(np.int32)))
    return dataset.shuffle(count, seed=1).repeat().batch(FLAGS.batch_size, drop_remainder=True).prefetch(1)


def cnn():
    layers, channels = tf.keras.layers, FLAGS.channels
    parts = [tf.keras.Input([FLAGS.size, FLAGS.size, 3])]
    for number in range(3):
        parts += [
            layers.Conv2D(channels * min(2, number + 1), 3, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(),
        ]
        parts += [layers.MaxPooling2D()] if number else []
    parts += [layers.Flatten(), layers.Dense(FLAGS.hidden, "relu"), layers.Dense(CLASSES)]
    return tf.keras.Sequential(parts)


class Windows(tf.keras.callbacks.Callback):
    """Trains as many batches as it is asked for, and then waits."""

    def __init__(self, asked):
        super().__init__()
        self.asked = asked

    def on_train_batch_end(self, batch, logs=None):
        try:
            next(self.asked)
        except StopIteration:
            self.model.stop_training = True


def main(_):
    tf.keras.utils.set_random_seed(1)
    model, loss_of = cnn(), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.Adam(0.0005)
    asked = windows.windows(model.count_params())
    next(asked)
    if not FLAGS.loop:
        model.compile(optimizer, loss_of)
        model.fit(batches(), steps_per_epoch=10**6, verbose=0, callbacks=[Windows(asked)])
        return

    @tf.function
    def step(images, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    for images, labels in batches():
        try:
            float(step(images, labels))  # waits for the result
            next(asked)
        except StopIteration:
            return


if __name__ == "__main__":
    app.run(main)
