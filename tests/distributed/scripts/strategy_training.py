"""A script with MirroredStrategy as users write it; the test converts it. Arguments: the folder for the weights, cases."""

import os
import sys

import numpy as np
import tensorflow as tf

FOLDER, CASES = sys.argv[1], sys.argv[2:]
VERSION = tuple(map(int, tf.__version__.split(".")[:2]))
tf.random.set_seed(1)
strategy = tf.distribute.MirroredStrategy()
BATCH = 24 // strategy.num_replicas_in_sync * strategy.num_replicas_in_sync
glorot = tf.keras.initializers.GlorotUniform
x = np.random.RandomState(0).rand(96, 6, 6, 1).astype(np.float32)
y = x.sum((1, 2)) / 10


def make_model(case):
    layers = [tf.keras.layers.Conv2D(4, 3, activation="relu", kernel_initializer=glorot(seed=1), input_shape=(6, 6, 1))]
    if "sync" in case:
        layers.append(
            tf.keras.layers.BatchNormalization(momentum=0.9, synchronized=True)
            if VERSION >= (2, 12)
            else tf.keras.layers.experimental.SyncBatchNormalization(momentum=0.9)
        )
    elif "norm" in case:
        layers.append(tf.keras.layers.BatchNormalization(momentum=0.9))
    layers += [tf.keras.layers.Flatten(), tf.keras.layers.Dense(1, kernel_initializer=glorot(seed=2))]
    return tf.keras.Sequential(layers)


def optimizer_of(case):
    clipnorm = 0.1 if "clip" in case else None
    if "sgd" in case:
        optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9, clipnorm=clipnorm)
    else:
        optimizer = tf.keras.optimizers.Adam(0.01, epsilon=1e-3, clipnorm=clipnorm)
    if "scale" in case:
        optimizer = tf.keras.mixed_precision.LossScaleOptimizer(optimizer)
    return optimizer


def with_fit(case):
    with strategy.scope():
        model = make_model(case)
        model.compile(optimizer=optimizer_of(case), loss="mse", metrics=["mae"])
    callbacks = [
        tf.keras.callbacks.ModelCheckpoint(os.path.join(FOLDER, case + ".weights.h5"), save_weights_only=True),
        tf.keras.callbacks.EarlyStopping("val_loss", patience=0, min_delta=0.002),
        tf.keras.callbacks.ReduceLROnPlateau("loss", patience=1, min_delta=10.0),
    ]
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(96).batch(BATCH)
    rows = tf.data.Dataset.from_tensor_slices((x[:48], y[:48])).batch(BATCH)
    model.fit(dataset, epochs=6, validation_data=rows, callbacks=callbacks, verbose=0)
    return model.get_weights()


def with_loop(case):
    with strategy.scope():
        model = make_model(case)
        optimizer = optimizer_of(case)
        squared_error = tf.keras.losses.MeanSquaredError(reduction="none")
        train_loss = tf.keras.metrics.Mean()
        checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(96).batch(BATCH)
    batches = strategy.experimental_distribute_dataset(dataset)

    def train_step(images, labels):
        with tf.GradientTape() as tape:
            errors = squared_error(labels, model(images, training=True))
            loss = tf.nn.compute_average_loss(errors, global_batch_size=BATCH)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        train_loss.update_state(errors)
        return loss

    @tf.function
    def distributed_step(images, labels):
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(train_step, (images, labels)), axis=None)

    losses = []
    for _ in range(3):
        for images, labels in batches:
            losses.append(float(distributed_step(images, labels)))
        checkpoint.save(os.path.join(FOLDER, case))
    return [*model.get_weights(), np.array(losses), train_loss.result().numpy()]


for each in CASES:
    weights = with_loop(each) if "loop" in each else with_fit(each)
    np.savez(os.path.join(FOLDER, f"{each}_{os.environ.get('RANK_ID', 'one')}"), *weights)
