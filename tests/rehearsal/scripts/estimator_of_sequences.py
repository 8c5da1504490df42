"""Train a tagger of padded sequences with an Estimator, evaluate it in turns, and warm-start a second one."""

import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
folder = tempfile.mkdtemp()
LENGTH = 6


def examples(count, seed):
    state = np.random.RandomState(seed)
    words = state.randint(1, 20, (count, LENGTH)).astype("int32")
    words *= np.arange(LENGTH) < state.randint(2, LENGTH + 1, (count, 1))
    return {"words": words}, (words % 3).astype("int32")


def train_input():
    return tf.data.Dataset.from_tensor_slices(examples(64, 0)).shuffle(64, seed=2).repeat().batch(16, drop_remainder=True)


def test_input():
    dataset = tf.data.Dataset.from_tensor_slices(examples(40, 1))
    return dataset.batch(16)


def model_fn(features, labels, mode, params):
    words, is_training = features["words"], mode == tf.estimator.ModeKeys.TRAIN
    mask = tf.cast(tf.not_equal(words, 0), tf.float32)
    table = tf.get_variable("embedding/table", [20, 8])
    x = tf.nn.embedding_lookup(table, words)
    x = tf.layers.dense(x, 16, activation=tf.nn.relu, name="encoder")
    x = tf.layers.batch_normalization(x, momentum=0.9, training=is_training, name="norm")
    x = tf.layers.dropout(x, 0.1, training=is_training)
    logits = tf.layers.dense(x, 3, name="tags")
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_sum(each * mask) / tf.reduce_sum(mask)
    if mode == tf.estimator.ModeKeys.EVAL:
        tags = tf.argmax(logits, -1, output_type=tf.int32)
        metrics = {"accuracy": tf.metrics.accuracy(labels, tags, weights=mask), "each": tf.metrics.mean(each, mask)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    step = tf.train.get_or_create_global_step()
    rate = params["rate"] * tf.minimum(1.0, tf.cast(step + 1, tf.float32) / 4.0)
    variables = tf.trainable_variables()
    pairs = list(zip(tf.gradients(loss, variables), variables))
    words_pairs = [pair for pair in pairs if "embedding" in pair[1].name]
    other_pairs = [(tf.clip_by_norm(pair[0], 0.1), pair[1]) for pair in pairs if "embedding" not in pair[1].name]
    # Without its gradients before it, Adam may update the encoder while the gradient of the embedding reads it.
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS) + [gradient for gradient, _ in pairs]):
        update_words = tf.train.AdagradOptimizer(0.05).apply_gradients(words_pairs)
        update_others = tf.train.AdamOptimizer(rate).apply_gradients(other_pairs, global_step=step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(update_words, update_others))


config = tf.estimator.RunConfig(model_dir=folder + "/first", tf_random_seed=3, save_summary_steps=3)
first = tf.estimator.Estimator(model_fn, config=config, params={"rate": 0.02})
for turn in range(2):
    first.train(train_input, steps=4)
    print("turn %d: %.4f" % (turn, first.evaluate(test_input)["accuracy"]))
warm = tf.estimator.WarmStartSettings(folder + "/first", vars_to_warm_start="(embedding|encoder|norm)/.*")
config = tf.estimator.RunConfig(model_dir=folder + "/second", tf_random_seed=4)
second = tf.estimator.Estimator(model_fn, config=config, params={"rate": 0.01}, warm_start_from=warm)
second.train(train_input, steps=4)
print("second: %.4f" % second.evaluate(test_input)["each"])
