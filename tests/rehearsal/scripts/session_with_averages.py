"""Train with sessions of TensorFlow 1: batch normalization, averages of the weights, and evaluation with them."""

import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
path = tempfile.mkdtemp() + "/model"
tf.set_random_seed(7)


def examples(count, seed):
    state = np.random.RandomState(seed)
    rows = state.normal(size=(count, 8)).astype("float32")
    return rows, (rows[:, :2].sum(1) > rows[:, 2:4].sum(1)).astype("int64")


x = tf.placeholder(tf.float32, [None, 8], "x")
y = tf.placeholder(tf.int64, [None], "y")
is_training = tf.placeholder_with_default(False, [], "is_training")
net = tf.layers.dense(x, 16, name="hidden")
net = tf.layers.batch_normalization(net, momentum=0.9, training=is_training, name="norm")
net = tf.layers.dropout(tf.nn.relu(net), 0.1, training=is_training)
logits = tf.layers.dense(net, 2, name="logits")
decayed = [variable for variable in tf.trainable_variables() if "kernel" in variable.name]
loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
total = loss + 0.01 * tf.add_n([tf.nn.l2_loss(variable) for variable in decayed])
step = tf.train.get_or_create_global_step()
rate = tf.train.exponential_decay(0.1, step, 5, 0.5, staircase=True)
optimizer = tf.train.MomentumOptimizer(rate, 0.9)
gradients, variables = zip(*optimizer.compute_gradients(total))
gradients, norm = tf.clip_by_global_norm(gradients, 0.3)
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    update = optimizer.apply_gradients(zip(gradients, variables), global_step=step)
average = tf.train.ExponentialMovingAverage(0.9)
with tf.control_dependencies([update]):
    train_op = average.apply(tf.trainable_variables())
with tf.variable_scope("evaluation"):
    accuracy, count_accuracy = tf.metrics.accuracy(y, tf.argmax(logits, 1))
    mean_loss, count_loss = tf.metrics.mean(loss)
start_evaluation = tf.variables_initializer(tf.get_collection(tf.GraphKeys.LOCAL_VARIABLES, "evaluation"))

rows, labels = examples(64, 0)
test_rows, test_labels = examples(40, 1)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(tf.local_variables_initializer())
    for epoch in range(3):
        order = np.random.RandomState(epoch).permutation(64)
        for start in range(0, 64, 16):
            batch = order[start : start + 16]
            session.run(train_op, {x: rows[batch], y: labels[batch], is_training: True})
        session.run(start_evaluation)
        for start in range(0, 40, 16):
            feed = {x: test_rows[start : start + 16], y: test_labels[start : start + 16]}
            session.run([count_accuracy, count_loss], feed)
        print("epoch %d: accuracy %.4f, loss %.4f" % (epoch, *session.run([accuracy, mean_loss])))
    tf.train.Saver().save(session, path)
with tf.Session() as session:
    session.run([tf.global_variables_initializer(), start_evaluation])
    tf.train.Saver(average.variables_to_restore()).restore(session, path)
    scores = session.run(logits, {x: test_rows})
    print("with averages: %.4f right" % np.mean(scores.argmax(1) == test_labels))
