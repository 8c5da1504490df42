"""Train a classifier in a loop with evaluation, and stop when the evaluation no longer improves."""

import numpy as np
import tensorflow as tf

BATCH_SIZE = 16


def examples(count, seed):
    state = np.random.RandomState(seed)
    images = state.rand(count, 8, 8, 1).astype("float32")
    labels = (images[:, :4].mean((1, 2, 3)) > images[:, 4:].mean((1, 2, 3))).astype("int64")
    return images, labels


train_data = tf.data.Dataset.from_tensor_slices(examples(64, 0)).shuffle(64, seed=3).batch(BATCH_SIZE, drop_remainder=True)
test_data = tf.data.Dataset.from_tensor_slices(examples(40, 1)).batch(BATCH_SIZE)
model = tf.keras.Sequential(
    [
        tf.keras.layers.Conv2D(8, 3, activation="relu", input_shape=(8, 8, 1)),
        tf.keras.layers.BatchNormalization(momentum=0.9),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dropout(0.2),
        tf.keras.layers.Dense(2),
    ]
)
schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay([6, 9], [0.01, 0.005, 0.001])
optimizer = tf.keras.optimizers.Adam(schedule)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
train_loss = tf.keras.metrics.Mean("train_loss")
test_loss = tf.keras.metrics.Mean("test_loss")
test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy("test_accuracy")


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        loss = loss_of(labels, logits)
        penalty = tf.add_n([tf.nn.l2_loss(weight) for weight in model.trainable_weights if len(weight.shape) > 1])
        loss += 1e-3 * penalty
    gradients = tape.gradient(loss, model.trainable_weights)
    gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
    optimizer.apply_gradients(zip(gradients, model.trainable_weights))
    train_loss.update_state(loss)


@tf.function
def test_step(images, labels):
    logits = model(images, training=False)
    test_loss.update_state(loss_of(labels, logits), sample_weight=tf.shape(labels)[0])
    test_accuracy.update_state(labels, logits)


best, waited, patience = float("inf"), 0, 1
for epoch in range(6):
    train_loss.reset_state()
    for images, labels in train_data:
        train_step(images, labels)
    test_loss.reset_state()
    test_accuracy.reset_state()
    for images, labels in test_data:
        test_step(images, labels)
    value = float(test_loss.result())
    print("epoch %d: loss %.4f, test loss %.4f" % (epoch, float(train_loss.result()), value))
    if value < best - 0.3:
        best, waited = value, 0
    else:
        waited += 1
    if waited > patience:
        break
print("test accuracy %.3f" % float(test_accuracy.result()))
