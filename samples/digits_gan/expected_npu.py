"""Draws handwritten digits with a GAN on several devices, with Horovod: two losses, two optimizers.

The discriminator learns to tell real digits from drawn ones, the generator to
deceive it, each with an optimizer of its own. Each optimizer averages the
gradients of its loss, which only its own variables get; each step runs one, then
the other, so that the second sees what the first has learnt.

    horovodrun -np 2 python original.py --steps=300 --model_dir=/tmp/gan

Data: the 1,797 real 8x8 images which scikit-learn carries.
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

flags.DEFINE_integer('steps', 300, 'Training steps, of both parts each.')
flags.DEFINE_integer('batch_size', 64, 'Images per step and rank.')
flags.DEFINE_float('generator_rate', 0.001, 'Learning rate of the generator.')
flags.DEFINE_float('discriminator_rate', 0.0005, 'Learning rate of the discriminator.')
flags.DEFINE_integer('seed', 1, 'Seed of the weights, the noise and the shuffling.')
flags.DEFINE_integer('log_every', 20, 'Log the losses every so many steps.')
flags.DEFINE_string('model_dir', None, 'Folder for checkpoints; a temporary one '
                    'when not given.')

NOISE = 16


def load_images():
    """Returns all images as [1797, 64], from -1 to 1."""
    return (load_digits().data / 8.0 - 1.0).astype(np.float32)


def draw_noise(count):
    return np.random.RandomState(FLAGS.seed).normal(size=(count, NOISE)).astype(np.float32)


def train_batches(images):
    """Returns the tensors of this rank's share of the next images and noise."""
    images = tf.data.Dataset.from_tensor_slices(images).shuffle(2000, seed=FLAGS.seed).repeat()
    noise = tf.data.Dataset.from_tensor_slices(draw_noise(10000)).repeat()
    # All ranks shuffle alike, so that together they see each image once.
    dataset = tf.data.Dataset.zip((images, noise)).shard(hvd.size(), hvd.rank())
    dataset = dataset.batch(FLAGS.batch_size, drop_remainder=True).prefetch(1)
    return tf.data.make_one_shot_iterator(dataset).get_next()


def dense(x, name, size):
    """A dense layer; each rank draws its own weights, and rank 0's count."""
    seed = FLAGS.seed + sum(map(ord, name)) + 1000 * hvd.rank()
    kernel = tf.get_variable(name + '/kernel', [int(x.shape[-1]), size],
                             initializer=tf.glorot_uniform_initializer(seed=seed))
    bias = tf.get_variable(name + '/bias', [size], initializer=tf.zeros_initializer())
    return tf.matmul(x, kernel) + bias


def generator(noise):
    """Returns drawn images [batch, 64]."""
    with tf.variable_scope('generator', reuse=tf.AUTO_REUSE):
        x = tf.nn.leaky_relu(dense(noise, 'hidden1', 64))
        x = tf.nn.leaky_relu(dense(x, 'hidden2', 128))
        return tf.tanh(dense(x, 'pixels', 64))


def discriminator(images):
    """Returns logits [batch]: how real each image looks."""
    with tf.variable_scope('discriminator', reuse=tf.AUTO_REUSE):
        x = tf.nn.leaky_relu(dense(images, 'hidden1', 128))
        x = tf.nn.leaky_relu(dense(x, 'hidden2', 64))
        return tf.squeeze(dense(x, 'real', 1), axis=1)


def cross_entropy(logits, label):
    """The mean loss where every label is the same."""
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
        logits=logits, labels=tf.fill(tf.shape(logits), label)))


def train_operation(loss, scope, rate, global_step=None):
    """Returns the op which averages the gradients of one loss and updates the variables of one scope."""
    optimizer = hvd.DistributedOptimizer(tf.train.AdamOptimizer(rate, beta1=0.5))
    return optimizer.minimize(loss, global_step=global_step,
                              var_list=tf.trainable_variables(scope))


def test(model_dir, images):
    """Returns how far the drawn images are from the real ones: in each pixel's mean and spread."""
    with tf.Graph().as_default():
        drawn = generator(tf.constant(draw_noise(2000)))
        with tf.Session(config=npu_config_proto()) as sess:
            tf.train.Saver().restore(sess, tf.train.latest_checkpoint(model_dir))
            found = sess.run(drawn)
    return (np.abs(found.mean(axis=0) - images.mean(axis=0)).mean()
            + np.abs(found.std(axis=0) - images.std(axis=0)).mean())


def main(_):
    hvd.init()
    model_dir = FLAGS.model_dir or tempfile.mkdtemp(prefix='digits_gan_')
    images = load_images()

    with tf.Graph().as_default():
        tf.set_random_seed(FLAGS.seed)
        real, noise = train_batches(images)
        drawn = generator(noise)
        real_logits, drawn_logits = discriminator(real), discriminator(drawn)
        discriminator_loss = cross_entropy(real_logits, 1.0) + cross_entropy(drawn_logits, 0.0)
        generator_loss = cross_entropy(drawn_logits, 1.0)

        # The global step counts what the generator has learnt: one of the two, or it would count double.
        step = tf.train.get_or_create_global_step()
        train_discriminator = train_operation(discriminator_loss, 'discriminator', FLAGS.discriminator_rate)
        train_generator = train_operation(generator_loss, 'generator', FLAGS.generator_rate, step)
        mean_losses = hvd.allreduce(tf.stack([discriminator_loss, generator_loss]))

        hooks = [hvd.BroadcastGlobalVariablesHook(0),
                 tf.train.StopAtStepHook(last_step=FLAGS.steps)]
        checkpoint_dir = model_dir if hvd.rank() == 0 else None
        with tf.train.MonitoredTrainingSession(checkpoint_dir=checkpoint_dir, hooks=hooks,
                                               save_checkpoint_steps=100,
                                               config=npu_config_proto()) as sess:
            while not sess.should_stop():
                sess.run(train_discriminator)
                _, losses, step_value = sess.run([train_generator, mean_losses, step])
                if hvd.rank() == 0 and (step_value + 1) % FLAGS.log_every == 0:
                    print('step %d loss %.8f of the discriminator, %.8f of the generator' % (
                        step_value + 1, losses[0], losses[1]), flush=True)

    if hvd.rank() == 0:
        print('distance %.4f' % test(model_dir, images))


if __name__ == '__main__':
    tf.disable_v2_behavior()
    app.run(main)
