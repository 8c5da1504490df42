"""A Keras model that trains with Horovod."""
import json

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
hvd.init()
x = np.linspace(-1, 1, 64).astype(np.float32).reshape(64, 1)
config = tf.ConfigProto()
config.gpu_options.visible_device_list = str(hvd.local_rank())
tf.keras.backend.set_session(tf.Session(config=config))
model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer='ones', input_shape=(1,))])
opt = hvd.DistributedOptimizer(tf.keras.optimizers.Adadelta(1.0 * hvd.size()))
model.compile(loss='mse', optimizer=opt)
callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
history = model.fit(x, 2 * x, batch_size=8, epochs=3, shuffle=False, callbacks=callbacks,
                    verbose=2 if hvd.rank() == 0 and False else 0)
print(json.dumps({'loss': [float(loss) for loss in history.history['loss']]}))
