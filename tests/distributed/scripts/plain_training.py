"""A script for one device as users write it; the test converts it. Arguments: the folder for the weights, the cases."""

import os
import sys

import numpy as np
import tensorflow as tf

FOLDER, CASES = sys.argv[1], sys.argv[2:]
VERSION = tuple(map(int, tf.__version__.split(".")[:2]))
tf.random.set_seed(1)
glorot = tf.keras.initializers.GlorotUniform
x = np.random.RandomState(0).rand(140, 6, 6, 1).astype(np.float32)
y = x.sum((1, 2)) / 10


class Net(tf.keras.Model):
    def __init__(self, is_normalized):
        super().__init__()
        self.convolve = tf.keras.layers.Conv2D(4, 3, activation="relu", kernel_initializer=glorot(seed=1))
        self.normalize = tf.keras.layers.BatchNormalization(momentum=0.9) if is_normalized else None
        self.flatten = tf.keras.layers.Flatten()
        self.dense = tf.keras.layers.Dense(1, kernel_initializer=glorot(seed=2))

    def call(self, images, training=False):
        images = self.convolve(images)
        if self.normalize is not None:
            images = self.normalize(images, training=training)
        return self.dense(self.flatten(images))


def optimizer_of(case):
    clip = {"clipnorm": 0.1} if "clip" in case else {}
    if "sgd" in case:
        optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9, **clip)
    else:
        optimizer = tf.keras.optimizers.Adam(0.01, epsilon=1e-3, **clip)  # well-conditioned where gradients are tiny
    if "scale" in case:
        optimizer = tf.keras.mixed_precision.LossScaleOptimizer(optimizer)
    return optimizer


def with_fit(case):
    model = Net("norm" in case)
    model.compile(optimizer_of(case), "mse", metrics=["mae", tf.keras.metrics.RootMeanSquaredError(name="rmse")])
    callbacks = []
    if "callbacks" in case:
        callbacks = [
            tf.keras.callbacks.ModelCheckpoint(os.path.join(FOLDER, case + ".weights.h5"), save_weights_only=True),
            tf.keras.callbacks.ModelCheckpoint(
                os.path.join(FOLDER, case + "_{epoch}.weights.h5"), "rmse", save_best_only=True, save_weights_only=True
            ),
            tf.keras.callbacks.CSVLogger(os.path.join(FOLDER, case + ".csv")),
            tf.keras.callbacks.EarlyStopping("val_loss", patience=1, min_delta=0.1),
            tf.keras.callbacks.ReduceLROnPlateau("loss", patience=1, min_delta=10.0),
            tf.keras.callbacks.LearningRateScheduler(lambda epoch, lr: lr * 0.9),
        ]
        if VERSION < (2, 16):  # later versions need the package tensorboard
            callbacks.append(tf.keras.callbacks.TensorBoard(os.path.join(FOLDER, case)))
    if "dataset" in case:
        dataset = tf.data.Dataset.from_tensor_slices((x[:135], y[:135])).shuffle(135, seed=3).batch(27)
        history = model.fit(dataset, epochs=3, verbose=0)
    else:
        rows = {"shuffle": "shuffled" in case, "validation_data": (x[:40], y[:40])}
        history = model.fit(x[:133], y[:133], 33, 9, 0, callbacks, **rows)
    return [*model.get_weights(), *(np.array(values) for _, values in sorted(history.history.items()))]


class Interruption(tf.keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 2:
            raise KeyboardInterrupt


class Batches(tf.keras.callbacks.Callback):
    losses = []

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(logs["loss"])


def with_backup(case):
    callbacks = tf.keras.callbacks if VERSION >= (2, 8) else tf.keras.callbacks.experimental
    for others in [Interruption()], []:
        model = Net(False)
        model(x[:1])
        model.compile(optimizer_of(case), "mse")
        backup = callbacks.BackupAndRestore(os.path.join(FOLDER, case))
        try:
            history = model.fit(x, y, 35, 5, 0, [backup, *others], shuffle=False)
        except KeyboardInterrupt:
            print("interrupted")
    return [*model.get_weights(), np.array(history.epoch)]


def with_nan(case):
    labels, batches = y.copy(), Batches()
    labels[100] = np.nan  # in the third batch, in the rows of one rank
    model = Net(False)
    model.compile(optimizer_of(case), "mse")
    model.fit(x, labels, 35, 5, 0, [tf.keras.callbacks.TerminateOnNaN(), batches], shuffle=False)
    assert np.isnan(batches.losses[-1])
    model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(1, kernel_initializer=glorot(seed=3))])
    model.compile(optimizer_of(case), "mse")
    losses = [model.train_on_batch(x[:rows], y[:rows]) for rows in (35, 34, 33, 1)]
    return [np.array(batches.losses[:-1]), np.array(losses), *model.get_weights()]


class Autoencoder(tf.keras.Model):
    """Models that are built in the training step, which is one's own."""

    def __init__(self):
        super().__init__()
        self.encoder = tf.keras.Sequential([tf.keras.layers.Dense(4, kernel_initializer=glorot(seed=4))])
        self.decoder = tf.keras.Sequential([tf.keras.layers.Dense(6, kernel_initializer=glorot(seed=5))])

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self.decoder(self.encoder(data)) - data) ** 2)
        weights = self.encoder.trainable_variables + self.decoder.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return {"squares": loss}


def with_own(case):
    model = Autoencoder()
    model.compile(optimizer_of(case))
    model.fit(x[:132, 0, :, 0], batch_size=33, epochs=2, shuffle=False, verbose=0)
    return model.encoder.get_weights() + model.decoder.get_weights()


def with_unbuilt(case):
    model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(1, kernel_initializer=glorot(seed=6))])
    optimizer = optimizer_of(case)

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(images) - labels) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    for images, labels in tf.data.Dataset.from_tensor_slices((x, y)).batch(28):
        train_step(images, labels)
    return model.get_weights()


def with_loop(case):
    model = Net("norm" in case)
    optimizer = optimizer_of(case)
    mean_squared_error = tf.keras.losses.MeanSquaredError()
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(140).batch(28)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), os.path.join(FOLDER, case), 2)

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            loss = mean_squared_error(labels, model(images, training=True))
            scaled = loss
            if "scale" in case:
                scaled = optimizer.scale_loss(loss) if VERSION >= (2, 16) else optimizer.get_scaled_loss(loss)
        gradients = tape.gradient(scaled, model.trainable_variables)
        if "scale" in case and VERSION < (2, 16):
            gradients = optimizer.get_unscaled_gradients(gradients)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    for _ in range(3):
        for images, labels in dataset:
            train_step(images, labels)
        manager.save()
    return model.get_weights()


for each in CASES:
    weights = globals()["with_" + each.split("_")[0]](each)
    np.savez(os.path.join(FOLDER, f"{each}_{os.environ.get('RANK_ID', 'one')}"), *weights)
