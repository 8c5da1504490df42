"""Keras `train_on_batch`, RMSprop"""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(0)
layers = [tf.keras.layers.Dense(12, "tanh", input_shape=(8,)), tf.keras.layers.Dense(1)]
model = tf.keras.Sequential(layers)
model.compile(tf.keras.optimizers.RMSprop(0.01), "mse")
for _ in range(8):
    print("loss", model.train_on_batch(random.rand(16, 8).astype("f4"), random.rand(16, 1).astype("f4")))
