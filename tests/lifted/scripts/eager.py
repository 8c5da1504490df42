"""Eager execution as TensorFlow 1 has it: switched on by the script."""
import json

import tensorflow as tf

tf.enable_eager_execution()
tfe = tf.contrib.eager


def slope(x):
    with tfe.GradientTape() as tape:
        tape.watch(x)
        y = tf.to_float(x) * x
    return tape.gradient(y, x)


total = 0
for number in tf.data.Dataset.range(4):
    total += int(number.numpy())
print(json.dumps({'slope': float(slope(tf.constant(3.0)).numpy()), 'total': total,
                  'eager': bool(tfe.executing_eagerly())}))
