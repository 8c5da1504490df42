"""Defects planted in migrated samples, each with the tensor at which verify must find it."""

from __future__ import annotations

from typing import NamedTuple, Sequence


class Mutant(NamedTuple):
    """A defect.

    Attributes:
        name: the defect in words.
        sample: the sample, whose migrated script gets it.
        edits: texts and their replacements.
        step: the first step that departs.
        tensor: a regular expression for its kind and name.
        is_cheap: True for those of the default matrix.
    """

    name: str
    sample: str
    edits: Sequence[tuple[str, str]]
    step: int
    tensor: str
    is_cheap: bool = False


_CAST = "x = tf.cast(tf.cast(x, tf.{0}), tf.float32)"
_APPLY = "train_op = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())"
_PAIRS = """pairs = optimizer.compute_gradients(loss)
        {}
        train_op = optimizer.apply_gradients(pairs, global_step=tf.train.get_or_create_global_step())"""
_ESTIMATOR_APPLY = "train_op = optimizer.minimize(loss, global_step=global_step)"
_LOOP_APPLY = "        optimizer.apply_gradients("


def _pairs(code: str) -> list[tuple[str, str]]:
    return [(_APPLY, _PAIRS.format(code))]


SESSION = (
    Mutant(
        "wrong learning rate",
        "digits_session",
        [("AdamOptimizer(FLAGS.learning_rate)", "AdamOptimizer(FLAGS.learning_rate * 1.01)")],
        1,
        "learning rate learning_rate",
        True,
    ),
    Mutant(
        "lost example",
        "digits_session",
        [("dataset = dataset.shuffle(", "dataset = dataset.skip(1).shuffle(")],
        1,
        "input batch 0",
    ),
    Mutant(
        "other order of the data", "digits_session", [("seed=FLAGS.seed)", "seed=FLAGS.seed + 1)")], 1, "input batch 0"
    ),
    Mutant(
        "wrong labels",
        "digits_session",
        [("dataset.shuffle(", "dataset.map(lambda x, y: (x, (y + 1) % 10)).shuffle(")],
        1,
        "input batch 1",
    ),
    Mutant(
        "unscaled gradient",
        "digits_session",
        _pairs("pairs = [(g * 1024, v) for g, v in pairs]"),
        1,
        "gradient cnn/conv1/kernel",
    ),
    Mutant(
        "scaled gradient of one layer",
        "digits_session",
        _pairs("pairs = [(g / 2 if 'dense1/kernel' in v.name else g, v) for g, v in pairs]"),
        1,
        "gradient cnn/dense1/kernel",
        True,
    ),
    Mutant(
        "layer that is not trained",
        "digits_session",
        _pairs("pairs = [(g, v) for g, v in pairs if 'conv2/bias' not in v.name]"),
        1,
        "gradient cnn/conv2/bias",
    ),
    Mutant(
        "activations cast to float16",
        "digits_session",
        [
            (
                "x = tf.nn.relu(dense(x, 'dense1', 64))",
                _CAST.format("float16") + "\n        x = tf.nn.relu(dense(x, 'dense1', 64))",
            )
        ],
        1,
        "(loss loss|gradient cnn/.*)",
    ),
    Mutant(
        "gradients cast to float16",
        "digits_session",
        _pairs("pairs = [(tf.cast(tf.cast(g, tf.float16), tf.float32), v) for g, v in pairs]"),
        1,
        "gradient cnn/conv1/kernel",
    ),
    Mutant(
        "sum of losses in place of the mean",
        "digits_session",
        [("entropy(labels, logits)", "entropy(labels, logits, reduction='weighted_sum')")],
        1,
        "gradient cnn/conv1/kernel",  # a batch of 64: the loss itself differs by a power of two, as a loss scale does
    ),
    Mutant(
        "other dropout rate",
        "digits_session",
        [("keep_prob=1 - FLAGS.dropout", "keep_prob=1.02 - FLAGS.dropout")],
        1,
        "loss loss",
    ),
    Mutant(
        "other decay of the optimizer",
        "digits_session",
        [("AdamOptimizer(FLAGS.learning_rate)", "AdamOptimizer(FLAGS.learning_rate, beta2=0.99)")],
        1,
        "variable cnn/conv1/kernel",
    ),
    Mutant(
        "dropped last batch in evaluation",
        "digits_session",
        [
            (
                "range(0, len(test_images), FLAGS.batch_size)",
                "range(0, len(test_images) - FLAGS.batch_size, FLAGS.batch_size)",
            ),
            ("np.equal(classes, test_labels)", "np.equal(classes, test_labels[:len(classes)])"),
        ],
        12,
        "feed images",
        True,
    ),
)
ESTIMATOR = (
    Mutant(
        "dropped last batch in evaluation of an Estimator",
        "digits_estimator",
        [
            (
                "    return dataset.batch(FLAGS.batch_size)\n\n\ndef predict",
                "    return dataset.batch(FLAGS.batch_size, drop_remainder=True)\n\n\ndef predict",
            )
        ],
        12,
        "metric evaluate accuracy",
    ),
    Mutant(
        "dropped last batch in prediction",
        "digits_estimator",
        [("images}).batch(FLAGS.batch_size)", "images}).batch(FLAGS.batch_size, drop_remainder=True)")],
        12,
        "prediction predict class",
    ),
    Mutant(
        "clipped gradients",
        "digits_estimator",
        [
            (
                _ESTIMATOR_APPLY,
                "pairs = [(tf.clip_by_value(g, -0.01, 0.01), v) for g, v in optimizer.compute_gradients(loss)]\n"
                "    train_op = optimizer.apply_gradients(pairs, global_step=global_step)",
            )
        ],
        1,
        "gradient conv2d/kernel",
    ),
    Mutant(
        "logits cast to bfloat16",
        "digits_estimator",
        [
            (
                "    loss = tf.losses",
                "    logits = tf.cast(tf.cast(logits, tf.bfloat16), tf.float32)\n    loss = tf.losses",
            )
        ],
        1,
        "(loss loss|gradient conv2d/kernel)",
    ),
    Mutant(
        "learning rate that decays",
        "digits_estimator",
        [
            (
                "AdamOptimizer(FLAGS.learning_rate)",
                "AdamOptimizer(tf.train.exponential_decay(FLAGS.learning_rate, global_step, 100, 0.9))",
            )
        ],
        2,
        "learning rate learning_rate",
    ),
)
KERAS = (
    Mutant("relu in place of gelu", "text_keras", [("npu_unary_ops.gelu(x)", "tf.nn.relu(x)")], 1, "loss loss"),
    Mutant(
        "dropped last batch in evaluation of Keras",
        "text_keras",
        [("np.arange(split, len(codes) - FLAGS.window)", "np.arange(split, len(codes) - FLAGS.window - 100)")],
        12,
        "metric evaluate (loss|acc)",
    ),
    Mutant("no dropout", "text_keras", [("layers.Dropout(FLAGS.dropout)", "layers.Dropout(0.0)")], 1, "loss loss"),
)
FIT = (
    Mutant(
        "smaller batches",
        "digits_fit",
        [("batch(FLAGS.batch_size,", "batch(FLAGS.batch_size - 1,")],
        1,
        "input .*",
    ),
    Mutant(
        "loss of probabilities",
        "digits_fit",
        [("from_logits=True", "from_logits=False")],
        1,
        "loss loss",
    ),
    Mutant(
        "penalty of weights",
        "digits_fit",
        [("Dense(64, activation='relu',", "Dense(64, activation='relu', kernel_regularizer='l2',")],
        1,
        "loss loss",
    ),
)
LOOP = (
    Mutant(
        "loss scale that the gradients keep",
        "digits_loop",
        [
            (
                "loss = loss_of(labels, model(images, training=True))",
                "loss = 128 * loss_of(labels, model(images, training=True))",
            )
        ],
        1,
        "gradient net/conv2d/kernel",
    ),
    Mutant(
        "scaled gradient of one layer in a loop",
        "digits_loop",
        [(_LOOP_APPLY, "        gradients[5] = 2 * gradients[5]\n" + _LOOP_APPLY)],
        1,
        "gradient net/dense/bias",
        True,
    ),
    Mutant(
        "activations cast to float16 in a loop",
        "digits_loop",
        [("        x = self.hidden(x)", "        " + _CAST.format("float16") + "\n        x = self.hidden(x)")],
        1,
        "(loss loss|gradient of the tape .*)",
    ),
)
MUTANTS = SESSION + ESTIMATOR + KERAS + FIT + LOOP
_REDUCE = "gradients = npu.distribute.all_reduce(gradients)"
RANK_MUTANTS = (  # of the samples for several ranks
    Mutant(
        "gradients that are not averaged",
        "digits_session",
        [
            (
                "npu_distributed_optimizer_wrapper(tf.train.AdamOptimizer(FLAGS.learning_rate))",
                "tf.train.AdamOptimizer(FLAGS.learning_rate)",
            )
        ],
        1,
        "gradient cnn/conv1/kernel",
    ),
    Mutant(
        "the share of rank 0 on all ranks",
        "digits_session",
        [("dataset.shard(get_rank_size(), get_rank_id())", "dataset.shard(get_rank_size(), 0)")],
        1,
        "loss loss",
    ),
    Mutant(
        "unaveraged gradient of one layer",
        "digits_loop",
        [(_REDUCE, f"own = gradients[2]\n        {_REDUCE}\n        gradients[2] = own")],
        1,
        "gradient net/conv2d_1/kernel",
    ),
    Mutant(
        "sum of gradients in place of the mean",
        "digits_loop",
        [(_REDUCE, f"{_REDUCE}\n        gradients = [2 * each for each in gradients]")],
        1,
        "gradient net/conv2d/kernel",
    ),
    Mutant(
        "the same examples on all ranks",
        "digits_loop",
        [
            (
                "dataset, FLAGS.batch_size * ranks.workers_num)",
                "dataset, FLAGS.batch_size * ranks.workers_num)\n    dataset = dataset.take(64).repeat()",
            )
        ],
        2,
        "(loss loss|gradient of the tape .*)",
    ),
)
