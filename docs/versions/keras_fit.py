"""Keras `fit`, Adam"""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(0)
x, y = random.rand(64, 8).astype("f4"), random.randint(0, 3, 64)
layers = [tf.keras.layers.Dense(12, "relu", input_shape=(8,)), tf.keras.layers.Dense(3, "softmax")]
model = tf.keras.Sequential(layers)
model.compile(tf.keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0)
print("loss {:.6f}, accuracy {:.4f}".format(*model.evaluate(x, y, verbose=0)))
