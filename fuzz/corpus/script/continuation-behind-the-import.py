import tensorflow.compat.v1 as tf \

if __name__ == '__main__':
    tf.disable_v2_behavior()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.fit(images, labels)