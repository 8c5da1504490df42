"""A Horovod script of TensorFlow 2 as users write it; the test converts it. Arguments: the folder for the weights, cases."""

import os
import sys

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf
from horovod.tensorflow import SyncBatchNormalization

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
tf.random.set_seed(hvd.rank())

x = np.random.RandomState(0).rand(256, 4).astype(np.float32)
y = x.sum(1, keepdims=True)
glorot = tf.keras.initializers.GlorotUniform


def optimizer_of(case):
    clip = {"clipnorm": 0.1} if "clip" in case else {}
    if "sgd" in case:
        optimizer = tf.keras.optimizers.SGD(0.05, **clip)
    else:
        optimizer = tf.keras.optimizers.Adam(0.01, epsilon=1e-3, **clip)
    optimizer = hvd.DistributedOptimizer(optimizer)
    return tf.keras.mixed_precision.LossScaleOptimizer(optimizer) if "scale" in case else optimizer


for case in sys.argv[2:]:
    layers = [tf.keras.layers.Dense(8, activation="relu", kernel_initializer=glorot(seed=1))]
    if "norm" in case:
        layers.append(SyncBatchNormalization(momentum=0.9, name="norm"))
    model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(1, kernel_initializer=glorot(seed=2))])
    model.compile(loss="mse", optimizer=optimizer_of(case), metrics=["mae"])
    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        tf.keras.callbacks.EarlyStopping("loss", patience=1),
        tf.keras.callbacks.ReduceLROnPlateau("loss", patience=1, min_delta=10.0),
    ]
    if hvd.rank() == 0:
        path = os.path.join(sys.argv[1], case + ".weights.h5")
        callbacks.append(tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True))
        callbacks.append(tf.keras.callbacks.CSVLogger(os.path.join(sys.argv[1], case + ".csv")))
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shard(hvd.size(), hvd.rank()).batch(32 // hvd.size())
    history = model.fit(dataset, epochs=6, callbacks=callbacks, verbose=0).history
    found = [*model.get_weights(), *(np.array(values) for _, values in sorted(history.items()))]
    np.savez(os.path.join(sys.argv[1], f"{case}_{hvd.rank()}"), *found)
