"""Keras in graph mode: a session of one's own, a recurrent layer with the defaults of TensorFlow 1, training."""
import json

import numpy as np
import tensorflow as tf
from tensorflow.keras import backend as K
from tensorflow.keras.layers import LSTM, Dense

X = np.array([[1.], [2.], [3.], [4.]], np.float32)
Y = 3 * X + 1
STEPS = np.array([[[1.], [-2.], [0.5]]], np.float32)


def main():
    K.set_session(tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=1)))
    model = tf.keras.Sequential([Dense(1, kernel_initializer='zeros', input_shape=(1,))])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.05), loss='mse')
    history = model.fit(X, Y, batch_size=4, epochs=3, verbose=0, shuffle=False)
    inputs = tf.keras.Input((3, 1))
    recurrent = tf.keras.Model(inputs, LSTM(1, kernel_initializer='ones', recurrent_initializer='ones')(inputs))
    found = {'kernel': model.get_weights()[0].tolist(), 'bias': model.get_weights()[1].tolist(),
             'losses': history.history['loss'], 'recurrent': recurrent.predict(STEPS).tolist(),
             'in_graph': isinstance(K.get_session(), tf.Session)}
    print(json.dumps(found))


if __name__ == '__main__':
    main()
