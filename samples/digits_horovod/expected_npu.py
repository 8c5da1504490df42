"""Reads handwritten digits with a small CNN on several devices, with Horovod.

Each rank trains on its share of every batch; the gradients are averaged over all
ranks and then clipped by their global norm. Rank 0 keeps the checkpoints, from
which a job that is started again goes on, and tests the result.

    horovodrun -np 2 python original.py --steps=200 --model_dir=/tmp/digits

Data: the 1,797 real 8x8 images which scikit-learn carries; four fifths are
trained on, the rest is the test set.
"""
import tempfile

from absl import app
from absl import flags
import npu_shim.horovod.tensorflow as hvd
import numpy as np
from sklearn.datasets import load_digits
import tensorflow.compat.v1 as tf
from npu_shim.npu_init import npu_config_proto

FLAGS = flags.FLAGS

flags.DEFINE_integer('steps', 200, 'Training steps.')
flags.DEFINE_integer('batch_size', 32, 'Images per step and rank.')
flags.DEFINE_float('learning_rate', 0.001, 'Learning rate for one rank.')
flags.DEFINE_enum('optimizer', 'adam', ['adam', 'sgd'], 'How weights are updated.')
flags.DEFINE_float('clip', 5.0, 'Largest global norm of the averaged gradients.')
flags.DEFINE_integer('seed', 1, 'Seed of the split, the weights and the shuffling.')
flags.DEFINE_integer('log_every', 20, 'Log the loss every so many steps.')
flags.DEFINE_string('model_dir', None, 'Folder for checkpoints; a temporary one '
                    'when not given.')


def load_data():
    """Returns (train images, train labels), (test images, test labels)."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[..., np.newaxis]
    labels = digits.target.astype(np.int32)
    order = np.random.RandomState(FLAGS.seed).permutation(len(images))
    train, test = np.split(order, [len(order) * 4 // 5])
    return (images[train], labels[train]), (images[test], labels[test])


def train_batches(images, labels):
    """Returns the tensors of this rank's share of the next shuffled batch."""
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(images), seed=FLAGS.seed).repeat()
    # All ranks shuffle alike, so that together they see each image once.
    dataset = dataset.shard(hvd.size(), hvd.rank())
    dataset = dataset.batch(FLAGS.batch_size, drop_remainder=True).prefetch(1)
    return tf.data.make_one_shot_iterator(dataset).get_next()


def weights(name, shape):
    """Returns a kernel of the given shape; each rank draws its own, and rank 0's count."""
    seed = FLAGS.seed + sum(map(ord, name)) + 1000 * hvd.rank()
    return tf.get_variable(name + '/kernel', shape,
                           initializer=tf.glorot_uniform_initializer(seed=seed))


def bias(name, size):
    return tf.get_variable(name + '/bias', [size], initializer=tf.zeros_initializer())


def conv(x, name, channels):
    kernel = weights(name, [3, 3, int(x.shape[-1]), channels])
    x = tf.nn.conv2d(x, kernel, strides=[1, 1, 1, 1], padding='SAME')
    return tf.nn.relu(tf.nn.bias_add(x, bias(name, channels)))


def dense(x, name, size):
    return tf.matmul(x, weights(name, [int(x.shape[-1]), size])) + bias(name, size)


def cnn(images):
    """Two convolutions and two dense layers; returns logits [batch, 10]."""
    with tf.variable_scope('cnn', reuse=tf.AUTO_REUSE):
        x = conv(images, 'conv1', 16)
        x = conv(x, 'conv2', 32)
        x = tf.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding='SAME')
        x = tf.reshape(x, [-1, 4 * 4 * 32])
        x = tf.nn.relu(dense(x, 'dense1', 64))
        return dense(x, 'dense2', 10)


def train_operation(loss):
    """Returns the op which averages the gradients, clips them and updates the weights."""
    rate = FLAGS.learning_rate * hvd.size()
    if FLAGS.optimizer == 'adam':
        optimizer = tf.train.AdamOptimizer(rate)
    else:
        optimizer = tf.train.GradientDescentOptimizer(rate)
    optimizer = hvd.DistributedOptimizer(optimizer)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    # Behind the averaging, so that all ranks clip the same gradients alike.
    gradients, _ = tf.clip_by_global_norm(gradients, FLAGS.clip)
    return optimizer.apply_gradients(list(zip(gradients, variables)),
                                     global_step=tf.train.get_or_create_global_step())


def test(model_dir, images, labels):
    """Returns the share of images which the last checkpoint reads right."""
    with tf.Graph().as_default():
        placeholder = tf.placeholder(tf.float32, [None, 8, 8, 1], name='images')
        classes = tf.argmax(cnn(placeholder), axis=1)
        with tf.Session(config=npu_config_proto()) as sess:
            tf.train.Saver().restore(sess, tf.train.latest_checkpoint(model_dir))
            found = sess.run(classes, feed_dict={placeholder: images})
    return np.equal(found, labels).mean()


def main(_):
    hvd.init()
    model_dir = FLAGS.model_dir or tempfile.mkdtemp(prefix='digits_horovod_')
    (train_images, train_labels), (test_images, test_labels) = load_data()

    with tf.Graph().as_default():
        tf.set_random_seed(FLAGS.seed)
        images, labels = train_batches(train_images, train_labels)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, cnn(images))
        train_op = train_operation(loss)
        mean_loss = hvd.allreduce(loss)
        step = tf.train.get_global_step()

        hooks = [hvd.BroadcastGlobalVariablesHook(0),
                 tf.train.StopAtStepHook(last_step=FLAGS.steps)]
        config = tf.ConfigProto()
        config.gpu_options.allow_growth = True
        config.gpu_options.visible_device_list = str(hvd.local_rank())
        checkpoint_dir = model_dir if hvd.rank() == 0 else None
        with tf.train.MonitoredTrainingSession(checkpoint_dir=checkpoint_dir, hooks=hooks,
                                               save_checkpoint_steps=100, config=npu_config_proto(config_proto=config)) as sess:
            while not sess.should_stop():
                _, loss_value, step_value = sess.run([train_op, mean_loss, step])
                if hvd.rank() == 0 and (step_value + 1) % FLAGS.log_every == 0:
                    print('step %d loss %.8f' % (step_value + 1, loss_value), flush=True)

    if hvd.rank() == 0:
        print('accuracy %.4f' % test(model_dir, test_images, test_labels))


if __name__ == '__main__':
    tf.disable_v2_behavior()
    app.run(main)
