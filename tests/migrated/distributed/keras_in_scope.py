"""A Keras model that is made and trained in the scope of a strategy."""
import json

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
x = np.linspace(-1, 1, 64).astype(np.float32).reshape(64, 1)
strategy = tf.distribute.MirroredStrategy()
batch_size = 8 * strategy.num_replicas_in_sync
with strategy.scope():
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(3, kernel_initializer='ones', activation='tanh', input_shape=(1,)),
        tf.keras.layers.Dense(1, kernel_initializer='ones')])
    model.compile('sgd', 'mse')
history = model.fit(x, 2 * x, batch_size=batch_size, epochs=3, shuffle=False, verbose=0)
print(json.dumps({'loss': [float(loss) for loss in history.history['loss']],
                  'weights': [w.tolist() for w in model.get_weights()]}))
