"""A script for one device that clips, logs, unscales and accumulates gradients; the test converts it.

    python gradient_readers.py FOLDER CASE ...

loop_ORDER and eager_ORDER take the steps of ORDER one after the other, as in loop_log_clip_unscale_add; fit_clip, of an
own training step.
"""

import os
import sys

import numpy as np
import tensorflow as tf

FOLDER, CASES = sys.argv[1], sys.argv[2:]
VERSION = tuple(map(int, tf.__version__.split(".")[:2]))
SCALE = 4.0
tf.random.set_seed(1)
rows = np.random.RandomState(0)
words = rows.randint(0, 12, [96, 3])
y = (words.sum(axis=1, keepdims=True) ** 2 / 60).astype(np.float32)


class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.embed = tf.keras.layers.Embedding(12, 4, embeddings_initializer=tf.keras.initializers.RandomUniform(seed=1))
        self.flatten = tf.keras.layers.Flatten()
        self.dense = tf.keras.layers.Dense(1, kernel_initializer=tf.keras.initializers.GlorotUniform(seed=2))

    def call(self, inputs):
        return self.dense(self.flatten(self.embed(inputs)))

    def train_step(self, data):
        inputs, labels = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(inputs) - labels) ** 2)
        gradients, norm = tf.clip_by_global_norm(tape.gradient(loss, self.trainable_variables), 0.2)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"squares": loss, "norm": norm}


class Logged:
    def __init__(self):
        self.norms = []

    def log(self, gradients):
        dense = [tf.convert_to_tensor(gradient) for gradient in gradients]
        histogram = tf.histogram_fixed_width(tf.concat([tf.reshape(each, [-1]) for each in dense], 0), [-0.83, 0.97], 8)
        return tf.concat([[tf.linalg.global_norm(dense)], tf.cast(histogram, tf.float32) / 100], 0)


def with_loop(case):
    order = case.split("_")[1:]
    model, optimizer = Net(), tf.keras.optimizers.SGD(0.05, momentum=0.9)
    model(words[:1])
    sums = [tf.Variable(tf.zeros(variable.shape), trainable=False) for variable in model.trainable_variables]
    logged = Logged()
    dataset = tf.data.Dataset.from_tensor_slices((words, y)).shuffle(96, seed=3).batch(16)

    variables = model.trainable_variables
    optimizer.apply_gradients([(tf.zeros_like(variable), variable) for variable in variables])  # makes its variables

    @tf.function
    def train_step(inputs, labels, is_last):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(inputs) - labels) ** 2)
            if "unscale" in order:
                loss = loss * SCALE
        gradients = tape.gradient(loss, variables)
        norms = tf.zeros([9])
        for name in order:
            if name == "log":
                norms = logged.log(gradients)
            elif name == "clip":
                gradients, _ = tf.clip_by_global_norm(gradients, 0.3)
            elif name == "unscale":
                gradients = [tf.convert_to_tensor(gradient) / SCALE for gradient in gradients]
            else:
                for total, gradient in zip(sums, gradients):
                    total.assign_add(tf.convert_to_tensor(gradient) / 2)
                gradients = [tf.identity(total) for total in sums]
        if is_last or "add" not in order:
            optimizer.apply_gradients(zip(gradients, variables))
            for total in sums:
                total.assign(tf.zeros_like(total))
        return norms

    for _ in range(3):
        for step, (inputs, labels) in enumerate(dataset):
            logged.norms.append(train_step(inputs, labels, step % 2 == 1).numpy())
    return [np.stack(logged.norms), *model.get_weights()]


def with_eager(case):
    tf.config.run_functions_eagerly(True)
    found = with_loop(case)
    tf.config.run_functions_eagerly(False)
    return found


def with_fit(case):
    model = Net()
    model.compile(tf.keras.optimizers.Adam(0.01, epsilon=1e-3))
    history = model.fit(words[:93], y[:93], batch_size=31, epochs=4, shuffle=False, verbose=0)
    assert history.history["squares"][-1] < history.history["squares"][0]
    return model.get_weights()


for each in CASES:
    found = globals()["with_" + each.split("_")[0]](each)
    np.savez(os.path.join(FOLDER, f"{each}_{os.environ.get('RANK_ID', 'one')}"), *found)
