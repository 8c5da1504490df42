"""A critic with batch normalization and a generator, for one device; the test converts them and follows the advice.

Arguments: the folder for the weights, the cases.
"""

import os
import sys

import numpy as np
import tensorflow as tf

FOLDER, CASES = sys.argv[1], sys.argv[2:]
BATCH_SIZE = 16
tf.random.set_seed(1)
glorot = tf.keras.initializers.GlorotUniform
real = np.random.RandomState(0).rand(64, 5).astype(np.float32)
critic = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(8, kernel_initializer=glorot(seed=1)),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.Activation("tanh"),
        tf.keras.layers.Reshape([2, 2, 2]),
        tf.keras.layers.BatchNormalization(),  # fused in Keras 2
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(1, kernel_initializer=glorot(seed=2)),
    ]
)
generator = tf.keras.Sequential([tf.keras.layers.Dense(5, kernel_initializer=glorot(seed=3))])
generator.build([None, 3])
critic.build([None, 5])


def penalty(rows, made):
    share = tf.random.uniform([BATCH_SIZE, 1], seed=6)
    mixed = share * rows + (1 - share) * made
    with tf.GradientTape() as tape:
        tape.watch(mixed)
        score = critic(mixed, training=True)
    norms = tf.sqrt(tf.reduce_sum(tape.gradient(score, mixed) ** 2, 1))
    return tf.reduce_mean((norms - 1) ** 2)


def trained(case):
    critic_optimizer = tf.keras.optimizers.SGD(0.1)
    generator_optimizer = tf.keras.optimizers.SGD(0.1)
    dataset = tf.data.Dataset.from_tensor_slices(real).shuffle(64).batch(BATCH_SIZE, drop_remainder=True)

    @tf.function
    def train_step(rows):
        noise = tf.random.normal([BATCH_SIZE, 3], seed=5)
        with tf.GradientTape(persistent=True) as tape:
            made = generator(noise)
            loss = tf.reduce_mean(critic(made, training=True)) - tf.reduce_mean(critic(rows, training=True))
            loss += penalty(rows, made)
            generator_loss = -tf.reduce_mean(critic(made, training=True))
        gradients = tape.gradient(loss, critic.trainable_variables)
        generator_gradients = tape.gradient(generator_loss, generator.trainable_variables)
        critic_optimizer.apply_gradients(zip(gradients, critic.trainable_variables))
        generator_optimizer.apply_gradients(zip(generator_gradients, generator.trainable_variables))

    for _ in range(3):
        for rows in dataset:
            train_step(rows)
    return critic.get_weights() + generator.get_weights()


for each in CASES:
    np.savez(os.path.join(FOLDER, f"{each}_{os.environ.get('RANK_ID', 'one')}"), *trained(each))
