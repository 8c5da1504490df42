"""A Horovod script of TensorFlow 2 as users write it; the test converts it. Argument: the file for the weights."""

import sys

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
tf.random.set_seed(hvd.rank())

x = np.random.RandomState(0).rand(256, 4).astype(np.float32)
y = x.sum(1, keepdims=True)
dataset = tf.data.Dataset.from_tensor_slices((x, y)).shard(hvd.size(), hvd.rank()).batch(32 // hvd.size())
glorot = tf.keras.initializers.GlorotUniform
model = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(8, activation="relu", kernel_initializer=glorot(seed=1)),
        tf.keras.layers.Dense(1, kernel_initializer=glorot(seed=2)),
    ]
)
optimizers = {"sgd": tf.keras.optimizers.SGD(0.05), "adam": tf.keras.optimizers.Adam(0.01)}
model.compile(loss="mse", optimizer=hvd.DistributedOptimizer(optimizers[sys.argv[2]]))
stops = tf.keras.callbacks.EarlyStopping("loss", patience=1)
slows = tf.keras.callbacks.ReduceLROnPlateau("loss", patience=1, min_delta=10.0)
model.fit(
    dataset,
    epochs=6,
    callbacks=[
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        stops,
        slows,
    ],
    verbose=0,
)
if hvd.rank() == 0:
    np.savez(sys.argv[1], *model.get_weights())
