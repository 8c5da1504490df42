"""A script of TensorFlow 2."""



def main():
    import numpy as np
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones([8, 3], np.float32), np.ones([8, 1], np.float32), batch_size=4)


main()
