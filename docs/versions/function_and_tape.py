"""`tf.function`, tape, Adam"""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(0)
net = tf.keras.Sequential([tf.keras.layers.Dense(12, "relu", input_shape=(8,)), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam(0.01)


@tf.function
def train(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(net(x, training=True) - y))
    variables = net.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


for _ in range(8):
    loss = train(tf.constant(random.rand(16, 8).astype("f4")), tf.constant(random.rand(16, 1).astype("f4")))
    print(f"loss {float(loss):.6f}")
