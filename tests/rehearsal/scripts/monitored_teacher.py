"""Train a teacher and a student in one monitored session, with a slow copy of the student and an early stop."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(5)


def examples(count, seed):
    state = np.random.RandomState(seed)
    rows = state.normal(size=(count, 6)).astype("float32")
    return rows, np.sin(rows[:, :1]) + 0.1 * rows[:, 1:2]


def network(x, name, size):
    with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
        return tf.layers.dense(tf.layers.dense(x, size, activation=tf.nn.tanh, name="hidden"), 1, name="output")


class EarlyStop(tf.train.SessionRunHook):
    def __init__(self, loss, patience):
        self.loss, self.patience, self.best, self.waited = loss, patience, float("inf"), 0

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self.loss)

    def after_run(self, run_context, run_values):
        if run_values.results < self.best:
            self.best, self.waited = run_values.results, 0
        else:
            self.waited += 1
        if self.waited >= self.patience:
            run_context.request_stop()


dataset = tf.data.Dataset.from_tensor_slices(examples(64, 0)).shuffle(64, seed=1).repeat().batch(16, drop_remainder=True)
rows, targets = tf.data.make_one_shot_iterator(dataset).get_next()
step = tf.train.get_or_create_global_step()
center = tf.get_variable("center", [6], initializer=tf.zeros_initializer(), trainable=False)
update_center = tf.assign(center, 0.8 * center + 0.2 * tf.reduce_mean(rows, 0))
with tf.control_dependencies([update_center]):
    inputs = rows - tf.identity(center)
teacher = network(inputs, "teacher", 12)
student = network(inputs, "student", 6)
is_used = tf.cast(tf.abs(targets) < 1.0, tf.float32)
teacher_loss = tf.reduce_sum(is_used * (teacher - targets) ** 2) / tf.reduce_sum(is_used)
student_loss = tf.reduce_mean((student - tf.stop_gradient(teacher)) ** 2) + 0.5 * tf.reduce_mean((student - targets) ** 2)
teacher_variables = tf.trainable_variables("teacher")
student_variables = tf.trainable_variables("student")
teacher_optimizer = tf.train.AdamOptimizer(0.02)
student_optimizer = tf.train.RMSPropOptimizer(0.01, decay=0.9)
train_teacher = teacher_optimizer.minimize(teacher_loss + 0.2 * student_loss, var_list=teacher_variables)
with tf.control_dependencies([train_teacher]):
    train_student = student_optimizer.minimize(student_loss, global_step=step, var_list=student_variables)
test_rows = tf.placeholder(tf.float32, [None, 6], "test_rows")
copy_output = network(test_rows - center, "copy", 6)
copies = tf.global_variables("copy")
with tf.control_dependencies([train_student]):
    slow = [tf.assign(copy, 0.9 * copy + 0.1 * own) for copy, own in zip(copies, student_variables)]
    train_op = tf.cond(tf.equal(tf.mod(step, 2), 0), lambda: tf.group(*slow), tf.no_op)

hooks = [EarlyStop(student_loss, 3), tf.train.StopAtStepHook(last_step=12)]
test_data, test_targets = examples(40, 1)
feed = {test_rows: test_data}
with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
    while not session.should_stop():
        session.run(train_op)
        if not session.should_stop():
            number = session.run_step_fn(lambda step_context: step_context.session.run(step))
            if number % 4 == 0:
                outputs = session.run_step_fn(lambda step_context: step_context.session.run(copy_output, feed))
                print("step %d: error %.4f" % (number, np.mean((outputs - test_targets) ** 2)))
