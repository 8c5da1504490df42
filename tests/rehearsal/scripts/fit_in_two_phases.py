"""Train a network with callbacks, then a new head on its frozen layers."""

import tempfile

import numpy as np
import tensorflow as tf

path = tempfile.mkdtemp() + "/first.weights.h5"


def examples(count, seed):
    state = np.random.RandomState(seed)
    rows = state.normal(size=(count, 6)).astype("float32")
    return rows, (rows[:, 0] * rows[:, 1] + 0.5 * rows[:, 2] > 0).astype("int64")


def network(name):
    inputs = tf.keras.Input([6])
    x = tf.keras.layers.Dense(16, activation="relu", name=name + "_body")(inputs)
    x = tf.keras.layers.BatchNormalization(momentum=0.9, name=name + "_norm")(x)
    x = tf.keras.layers.Dense(16, activation="relu", name=name + "_hidden")(x)
    x = tf.keras.layers.Dropout(0.1, name=name + "_dropout")(x)
    return tf.keras.Model(inputs, tf.keras.layers.Dense(2, name=name + "_head")(x), name=name)


def compiled(model, optimizer):
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=optimizer, loss=loss, metrics=["accuracy"])
    return model


rows, labels = examples(80, 0)
test_rows, test_labels = examples(40, 1)
first = compiled(network("first"), tf.keras.optimizers.SGD(0.1, momentum=0.9))
first.fit(
    rows,
    labels,
    batch_size=16,
    epochs=6,
    shuffle=False,
    verbose=0,
    class_weight={0: 1.0, 1: 2.0},
    validation_data=(test_rows, test_labels),
    validation_batch_size=16,
    callbacks=[
        tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 if epoch < 2 else 0.05),
        tf.keras.callbacks.EarlyStopping("val_loss", min_delta=0.5, patience=2, restore_best_weights=True),
    ],
)
print("first: loss %.4f, accuracy %.4f" % tuple(first.evaluate(test_rows, test_labels, batch_size=16, verbose=0)))
first.save_weights(path)

second = network("second")
saved = network("saved")
saved.load_weights(path)
for number in (1, 2, 3):
    second.layers[number].set_weights(saved.layers[number].get_weights())
for layer in second.layers[:3]:
    layer.trainable = False
compiled(second, tf.keras.optimizers.Adam(0.01))
second.fit(rows, labels, batch_size=16, epochs=2, shuffle=False, verbose=0)
predicted = second.predict(test_rows, batch_size=16, verbose=0).argmax(1)
print("second: right %d of %d" % ((predicted == test_labels).sum(), len(test_labels)))
