"""A loop over session.run in place of the one of the public project, with its arguments."""

import numpy as np
import tensorflow as tf
from text_cnn import TextCNN

tf.flags.DEFINE_integer("num_epochs", 2, "Number of epochs.")
FLAGS = tf.flags.FLAGS


def main(argv=None):
    cnn = TextCNN(3)
    step = tf.train.AdamOptimizer(1e-3).minimize(cnn.loss)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(FLAGS.num_epochs):
            for rows in (4, 3):
                feed = {cnn.x: np.ones([rows, 3]), cnn.y: np.ones([rows, 1]), cnn.keep: 0.5}
                print("loss", sess.run([step, cnn.loss], feed)[1])


if __name__ == "__main__":
    tf.app.run()
