"""Defects of one line in the scripts of tests/rehearsal/scripts, each with the step and the kind of the value that departs first."""

from __future__ import annotations

from typing import NamedTuple


class LineDefect(NamedTuple):
    """A defect of one line.

    Attributes:
        name: in words.
        old: a text of the script.
        new: its replacement.
        step: the first step that departs.
        kind: a regular expression for the kind of the first value that departs.
        is_cheap: True for those of the default matrix.
    """

    name: str
    old: str
    new: str
    step: int
    kind: str
    is_cheap: bool = False


_D = LineDefect
DEFECTS: dict[str, tuple[LineDefect, ...]] = {
    "loop_with_early_stop": (
        _D("batch-norm momentum", "momentum=0.9", "momentum=0.91", 1, "untrained variable"),
        _D(
            "training mode in evaluation",
            "model(images, training=False)",
            "model(images, training=True)",
            4,
            "metric result",
        ),
        _D("metric that is not reset", "    test_loss.reset_state()\n", "", 8, "metric result"),
        _D("lost evaluation batch", "in test_data:", "in test_data.take(2):", 4, "model call"),
        _D("patience", 'float("inf"), 0, 1', 'float("inf"), 0, 2', 12, "metric result|final variable"),
        _D("schedule one step late", "[6, 9]", "[7, 9]", 8, "learning rate"),
        _D("clip norm", "(gradients, 0.5)", "(gradients, 0.45)", 1, "gradient"),
        _D("weight decay", "1e-3 * penalty", "1.1e-3 * penalty", 1, "loss"),
        _D("evaluation without weights", ", sample_weight=tf.shape(labels)[0])", ")", 4, "metric result"),
        _D("lost example", ".shuffle(64, seed=3)", ".shuffle(64, seed=3).skip(1)", 1, "input"),
    ),
    "gan_with_average": (
        _D("decay of the average", "0.9 * mean + 0.1 * weight", "0.91 * mean + 0.09 * weight", 2, "untrained variable"),
        _D("rate of the second optimizer", "Adam(0.01, beta_1=0.5)", "Adam(0.0101, beta_1=0.5)", 1, "learning rate"),
        _D("moment of the first optimizer", "Adam(0.005, beta_1=0.5)", "Adam(0.005, beta_1=0.51)", 4, "variable"),
        _D(
            "average that is not restored",
            "critic=second.critic, average=second.average, step",
            "critic=second.critic, step",
            6,
            "untrained variable",
        ),
        _D("counter that is not restored", ", step=second.step)", ")", 6, "untrained variable"),
        _D("label smoothing", "0.9 * tf.ones_like", "0.92 * tf.ones_like", 1, "loss"),
        _D(
            "detached gradient",
            "tf.reduce_mean(fake, 0)",
            "tf.stop_gradient(tf.reduce_mean(fake, 0))",
            2,
            "gradient of the tape",
        ),
        _D(
            "clip norm of each gradient",
            "tf.clip_by_norm(gradient, 0.05)",
            "tf.clip_by_norm(gradient, 0.047)",
            2,
            "gradient",
        ),
        _D(
            "evaluation of the other model",
            "distance(second.average,",
            "distance(second.generator,",
            11,
            "model call",
            True,
        ),
        _D(
            "generator trained at each other step from the first",
            "number % 2 == 1",
            "number % 2 == 0",
            1,
            "untrained variable",
        ),
    ),
    "fit_in_two_phases": (
        _D("batch-norm momentum", "momentum=0.9, name", "momentum=0.91, name", 1, "untrained variable"),
        _D("patience", "patience=2", "patience=3", 15, "untrained variable"),
        _D("weights that are not restored", "restore_best_weights=True", "restore_best_weights=False", 15, "loss"),
        _D("schedule one epoch late", "epoch < 2", "epoch < 3", 11, "learning rate"),
        _D("weight of a class", "1: 2.0", "1: 1.9", 1, "input"),
        _D("layer that is not restored", "in (1, 2, 3):", "in (1, 2):", 15, "loss"),
        _D("layer that is not frozen", "second.layers[:3]", "second.layers[:2]", 15, "loss"),
        _D(
            "lost evaluation batch",
            "first.evaluate(test_rows, test_labels,",
            "first.evaluate(test_rows[:32], test_labels[:32],",
            15,
            "metric",
        ),
        _D(
            "lost batch of the validation",
            "validation_data=(test_rows, test_labels)",
            "validation_data=(test_rows[:32], test_labels[:32])",
            5,
            "log",
        ),
        _D("momentum of the optimizer", "SGD(0.1, momentum=0.9)", "SGD(0.1, momentum=0.89)", 2, "variable"),
    ),
    "session_with_averages": (
        _D("batch-norm momentum", "momentum=0.9, training", "momentum=0.91, training", 1, "untrained variable"),
        _D(
            "moving statistics that are not updated",
            "tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS))",
            "tf.control_dependencies([])",
            1,
            "untrained variable",
        ),
        _D(
            "training mode in evaluation",
            "y: test_labels[start : start + 16]}",
            "y: test_labels[start : start + 16], is_training: True}",
            4,
            "fetch",
        ),
        _D("metric that is not reset", "        session.run(start_evaluation)\n", "", 8, "fetch"),
        _D("lost evaluation batch", "range(0, 40, 16)", "range(0, 32, 16)", 4, "feed"),
        _D(
            "decay of the average",
            "ExponentialMovingAverage(0.9)",
            "ExponentialMovingAverage(0.91)",
            1,
            "untrained variable",
            True,
        ),
        _D(
            "evaluation without the averages",
            "tf.train.Saver(average.variables_to_restore())",
            "tf.train.Saver()",
            12,
            "fetch",
        ),
        _D(
            "schedule one step late",
            "exponential_decay(0.1, step, 5,",
            "exponential_decay(0.1, step, 6,",
            6,
            "learning rate",
        ),
        _D("clip norm", "(gradients, 0.3)", "(gradients, 0.29)", 1, "gradient"),
        _D("weight decay of one layer less", "for variable in decayed])", "for variable in decayed[1:]])", 1, "loss"),
    ),
    "estimator_of_sequences": (
        _D("loss of the padding", "tf.reduce_sum(each * mask)", "tf.reduce_sum(each)", 1, "gradient"),
        _D("metric of the padding", "tags, weights=mask)", "tags)", 4, "metric"),
        _D("batch-norm momentum", "momentum=0.9", "momentum=0.91", 1, "untrained variable"),
        _D(
            "training mode in evaluation",
            "momentum=0.9, training=is_training",
            "momentum=0.9, training=True",
            4,
            "metric",
        ),
        _D("lost evaluation batch", "dataset.batch(16)", "dataset.batch(16).take(2)", 4, "metric"),
        _D("lost example", ".shuffle(64, seed=2)", ".shuffle(64, seed=2).skip(1)", 1, "input"),
        _D("warm-up one step late", "tf.cast(step + 1, tf.float32)", "tf.cast(step, tf.float32)", 1, "learning rate"),
        _D("rate of the second optimizer", "AdagradOptimizer(0.05)", "AdagradOptimizer(0.0505)", 1, "learning rate"),
        _D("layer that is not restored", "(embedding|encoder|norm)/", "(embedding|norm)/", 9, "gradient"),
        _D(
            "detached gradient",
            "tf.nn.embedding_lookup(table, words)",
            "tf.nn.embedding_lookup(table, words) + tf.stop_gradient(tf.nn.embedding_lookup(table, words)) * 0.01",
            1,
            "gradient",
        ),
    ),
    "monitored_teacher": (
        _D(
            "decay of the slow copy",
            "0.9 * copy + 0.1 * own",
            "0.91 * copy + 0.09 * own",
            1,
            "untrained variable",
            True,
        ),
        _D("decay of the running mean", "0.8 * center + 0.2 *", "0.81 * center + 0.19 *", 1, "loss"),
        _D("rate of the second optimizer", "RMSPropOptimizer(0.01,", "RMSPropOptimizer(0.0101,", 1, "learning rate"),
        _D("decay of the second optimizer", "decay=0.9)", "decay=0.91)", 1, "variable"),
        _D("gradient that is not stopped", "tf.stop_gradient(teacher)", "teacher", 1, "gradient"),
        _D("patience", "EarlyStop(student_loss, 3)", "EarlyStop(student_loss, 2)", 4, "fetch"),
        _D("mask of the loss", "tf.abs(targets) < 1.0", "tf.abs(targets) < 0.9", 1, "loss"),
        _D("slow copy at each third step", "tf.mod(step, 2)", "tf.mod(step, 3)", 2, "(untrained variable|fetch)"),
        _D(
            "copy of one layer less",
            "zip(copies, student_variables)",
            "zip(copies[:2], student_variables)",
            1,
            "untrained variable",
        ),
        _D(
            "lost test examples",
            "feed = {test_rows: test_data}",
            "feed = {test_rows: test_data * [1, 1, 1, 1, 1, 0]}",
            4,
            "feed",
        ),
    ),
}
