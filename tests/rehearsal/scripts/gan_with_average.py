"""Train a generator against a critic, average the weights of the generator, and go on from a checkpoint."""

import tempfile

import numpy as np
import tensorflow as tf

folder = tempfile.mkdtemp()
real_data = np.random.RandomState(0).normal(2.0, 0.5, (96, 4)).astype("float32")


def generator_model():
    layers = [tf.keras.layers.Dense(8, activation="relu", input_shape=(3,)), tf.keras.layers.Dense(4)]
    return tf.keras.Sequential(layers, name="generator")


class Training:
    def __init__(self):
        self.generator = generator_model()
        self.average = generator_model()
        layers = [tf.keras.layers.Dense(8, activation="tanh", input_shape=(4,)), tf.keras.layers.Dense(1)]
        self.critic = tf.keras.Sequential(layers, name="critic")
        self.generator_optimizer = tf.keras.optimizers.Adam(0.005, beta_1=0.5)
        self.critic_optimizer = tf.keras.optimizers.Adam(0.01, beta_1=0.5)
        self.step = tf.Variable(0, trainable=False, name="step", dtype=tf.int64)
        self.average.set_weights(self.generator.get_weights())

    def train_critic(self, real, noise):
        fake = self.generator(noise)
        with tf.GradientTape() as tape:
            on_real, on_fake = self.critic(real), self.critic(fake)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(0.9 * tf.ones_like(on_real), on_real))
            loss += tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(tf.zeros_like(on_fake), on_fake))
        gradients = tape.gradient(loss, self.critic.trainable_weights)
        self.critic_optimizer.apply_gradients(zip(gradients, self.critic.trainable_weights))

    def train_generator(self, noise):
        with tf.GradientTape() as tape:
            fake = self.generator(noise)
            on_fake = self.critic(fake)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(tf.ones_like(on_fake), on_fake))
            loss += 0.1 * tf.reduce_mean((tf.reduce_mean(fake, 0) - real_data.mean(0)) ** 2)
        gradients = tape.gradient(loss, self.generator.trainable_weights)
        gradients = [tf.clip_by_norm(gradient, 0.05) for gradient in gradients]
        self.generator_optimizer.apply_gradients(zip(gradients, self.generator.trainable_weights))

    def update_average(self):
        for mean, weight in zip(self.average.weights, self.generator.weights):
            mean.assign(0.9 * mean + 0.1 * weight)

    def run(self, steps):
        for number in range(steps):
            noise = tf.random.normal([16, 3])
            start = int(self.step) * 16 % 96
            real = tf.constant(real_data[start : start + 16])
            self.train_critic(real, noise)
            if number % 2 == 1:
                self.train_generator(noise)
                self.update_average()
            self.step.assign_add(1)


@tf.function
def distance(model, noise):
    return tf.norm(tf.reduce_mean(model(noise), 0) - real_data.mean(0))


first = Training()
first.run(6)
saved = tf.train.Checkpoint(generator=first.generator, critic=first.critic, average=first.average, step=first.step)
path = saved.write(folder + "/model")
second = Training()
restored = tf.train.Checkpoint(generator=second.generator, critic=second.critic, average=second.average, step=second.step)
restored.read(path).expect_partial()
second.run(6)
found = distance(second.average, tf.random.normal([64, 3], seed=5))
print("distance %.0f after %d steps" % (float(found), int(second.step)))
