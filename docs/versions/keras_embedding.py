"""Keras functional model, embedding, `fit`"""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(0)
x, y = random.randint(0, 30, (64, 6)), random.rand(64, 1).astype("f4")
tokens = tf.keras.layers.Input((6,), dtype="int32")
mean = tf.keras.layers.GlobalAveragePooling1D()(tf.keras.layers.Embedding(30, 8)(tokens))
model = tf.keras.Model(tokens, tf.keras.layers.Dense(1)(mean))
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
model.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0)
