"""NPUEstimator and the last batch: prediction pads it, evaluation keeps it, and results equal TensorFlow's."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import npu_shim
from npu_shim._tensorflow import tf_api
from npu_shim.estimator.npu.npu_config import NPURunConfig
from npu_shim.estimator.npu.npu_estimator import NPUEstimator

pytestmark = [pytest.mark.once_tf115, pytest.mark.slow]

v1 = tf.compat.v1
N, BATCH = 70, 16
ROWS = np.random.RandomState(7).randn(N, 3).astype(np.float32)


def rows_input(batch=BATCH, wrap=lambda x: {"x": x}, n=N):
    return lambda: tf.data.Dataset.from_tensor_slices(ROWS[:n]).batch(batch).map(wrap)


def predictor(make_predictions, shapes):
    """A model_fn that predicts, notes the static shapes of its features, and has one variable."""

    def model_fn(features, labels, mode):
        assert labels is None
        shapes.extend(t.shape.as_list()[0] for t in tf.nest.flatten(features))
        v1.get_variable("unused", [], initializer=v1.zeros_initializer())
        return tf.estimator.EstimatorSpec(mode, predictions=make_predictions(features))

    return model_fn


def scores(x):
    return tf.matmul(x, tf.constant(np.arange(6).reshape(3, 2) / 7, tf.float32))


# what a model_fn predicts, whether its rows are known, and the input
PREDICTIONS = {
    "a dict": (lambda f: {"score": scores(f["x"]), "class": tf.argmax(scores(f["x"]), 1)}, True, rows_input()),
    "a tensor": (lambda f: scores(f["x"]), True, rows_input()),
    "text": (lambda f: {"text": tf.as_string(f["x"][:, 0])}, True, rows_input()),
    "the features themselves": (lambda f: {"x": f["x"]}, True, rows_input()),
    "features that are a tensor": (lambda f: {"y": f * 2}, True, rows_input(wrap=lambda x: x)),
    "features that are a tuple": (
        lambda f: {"y": f["a"][0] * 2},
        True,
        rows_input(wrap=lambda x: {"a": (x, x), "b": x}),
    ),
    "labels are left out": (lambda f: {"y": f["x"] * 2}, True, rows_input(wrap=lambda x: ({"x": x}, x[:, 0]))),
    "a batch that divides": (lambda f: {"y": f["x"] + 1}, True, rows_input(batch=14)),
    "fewer rows than a batch": (lambda f: {"y": f["x"] + 1}, True, rows_input(n=5)),
    "a batch of one": (lambda f: {"y": f["x"] + 1}, True, rows_input(batch=1, n=3)),
    "a largest row": (lambda f: {"y": f["x"] / tf.reduce_max(tf.abs(f["x"]))}, True, rows_input()),
    "two rows for each example": (lambda f: {"y": tf.reshape(tf.tile(f["x"], [1, 2]), [-1, 3])}, False, rows_input()),
    "centred by the batch": (lambda f: {"y": f["x"] - tf.reduce_mean(f["x"], 0)}, False, rows_input()),
    "scaled by all": (lambda f: {"y": f["x"] / tf.reduce_sum(f["x"] ** 2)}, False, rows_input()),
    "by the products of rows": (
        lambda f: {"y": tf.matmul(f["x"], tf.matmul(f["x"], f["x"], transpose_a=True))},
        False,
        rows_input(),
    ),
    "batch statistics": (
        lambda f: {"y": v1.nn.fused_batch_norm(tf.reshape(f["x"], [-1, 1, 1, 3]), [1.0] * 3, [0.0] * 3)[0][:, 0, 0]},
        False,
        rows_input(),
    ),
}


def both(make_predictions, input_fn, tmp_path, **arguments):
    """Return the results of tf's Estimator and of NPUEstimator, and the batch dimensions in the model_fn of the latter."""
    shapes = []
    plain = tf.estimator.Estimator(predictor(make_predictions, []), str(tmp_path / "a"))
    ours = NPUEstimator(predictor(make_predictions, shapes), str(tmp_path / "b"), NPURunConfig())
    wanted = list(plain.predict(input_fn, **arguments))
    return wanted, list(ours.predict(input_fn, **arguments)), shapes


def assert_alike(got, wanted):
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted):
        tf.nest.assert_same_structure(one, other)
        for a, b in zip(tf.nest.flatten(one), tf.nest.flatten(other)):
            assert type(a) is type(b) and np.asarray(a).dtype == np.asarray(b).dtype
            if np.asarray(a).dtype.kind == "f":  # a product of matrices may add up in another order for another size
                np.testing.assert_allclose(a, b, rtol=1e-6)
            else:
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("predictions, can_pad, input_fn", PREDICTIONS.values(), ids=PREDICTIONS)
def test_predict_yields_the_same_as_tensorflow(predictions, can_pad, input_fn, tmp_path, log):
    wanted, got, shapes = both(predictions, input_fn, tmp_path)
    assert_alike(got, wanted)
    assert (None not in shapes) == can_pad
    said = [text for text in log() if "predict does not pad" in text]
    assert len(said) == (not can_pad)


BATCHES = {
    "rows": (lambda f: {"score": scores(f["x"]), "class": tf.argmax(scores(f["x"]), 1)}, True),
    "one tensor of rows": (lambda f: scores(f["x"]), True),
    "a number for all": (lambda f: {"y": f["x"] * 2, "scale": tf.constant(2.0)}, True),
    "a table": (lambda f: {"y": f["x"] * 2, "table": tf.zeros([5, 2])}, True),
    "a column that only the batch size gives": (
        lambda f: {"y": f["x"] * 3, "n": tf.fill(tf.shape(f["x"])[:1], 5)},
        False,
    ),
    "a table as long as a batch": (lambda f: {"y": f["x"] * 2, "table": tf.zeros([BATCH, 2])}, False),
    "a mean": (lambda f: {"y": f["x"] * 2, "mean": tf.reduce_mean(f["x"])}, False),
}


@pytest.mark.parametrize("predictions, can_pad", BATCHES.values(), ids=BATCHES)
def test_batches_are_the_same_as_in_tensorflow(predictions, can_pad, tmp_path):
    wanted, got, shapes = both(predictions, rows_input(), tmp_path, yield_single_examples=False)
    assert_alike(got, wanted)
    assert (None not in shapes) == can_pad


def test_a_column_that_depends_only_on_the_batch_size(tmp_path):
    make = lambda f: {"y": f["x"] * 3, "n": tf.fill(tf.shape(f["x"])[:1], 5)}  # noqa: E731
    wanted, got, shapes = both(make, rows_input(), tmp_path)
    assert_alike(got, wanted)
    assert None not in shapes


def test_predict_keys_are_selected_before_rows_are_checked(tmp_path):
    make = lambda f: {"y": f["x"] * 2, "mean": tf.reduce_mean(f["x"])}  # noqa: E731
    wanted, got, shapes = both(make, rows_input(), tmp_path, predict_keys=["y"])
    assert_alike(got, wanted)
    assert None not in shapes


def test_different_numbers_of_rows_raise_the_error_of_tensorflow(tmp_path):
    ours = NPUEstimator(predictor(lambda f: {"y": f["x"], "z": f["x"][:3]}, []), str(tmp_path), NPURunConfig())
    with pytest.raises(ValueError, match="Batch length of predictions should be same"):
        list(ours.predict(rows_input()))


INPUTS = {
    "a queue": lambda: v1.estimator.inputs.numpy_input_fn({"x": ROWS}, batch_size=BATCH, shuffle=False),
    "tensors of an iterator": lambda: lambda: v1.data.make_one_shot_iterator(rows_input()()).get_next(),
    "a dataset that is static": lambda: (
        lambda: tf.data.Dataset.from_tensor_slices({"x": ROWS}).batch(35, drop_remainder=True)
    ),
    "batches of no known size": lambda: (
        lambda: tf.data.Dataset.from_generator(
            lambda: ({"x": ROWS[i : i + 16]} for i in range(0, N, 16)), {"x": tf.float32}, {"x": [None, 3]}
        )
    ),
}


@pytest.mark.parametrize("name", list(INPUTS))
def test_input_that_cannot_be_padded_is_predicted_unchanged(name, tmp_path):
    wanted, got, _ = both(lambda f: {"y": f["x"] * 2}, INPUTS[name](), tmp_path)
    assert len(got) == N
    assert_alike(got, wanted)


def test_hooks_checkpoint_and_input_fn_arguments(tmp_path, line, linear_model_fn):
    """The user's hooks see every run, a checkpoint by name is restored, and input_fn gets mode and params."""
    seen, runs = [], []

    class Hook(tf_api.SessionRunHook):
        def before_run(self, run_context):
            return v1.train.SessionRunArgs(v1.train.get_global_step())

        def after_run(self, run_context, run_values):
            runs.append(int(run_values.results))

    def input_fn(mode, params):
        seen.append((mode, dict(params)))
        return tf.data.Dataset.from_tensor_slices({"x": line[0]}).batch(BATCH)

    job = NPUEstimator(
        linear_model_fn(tf.estimator.EstimatorSpec),
        str(tmp_path),
        NPURunConfig(save_checkpoints_steps=5),
        params={"rate": 0.3},
    )
    train = lambda: tf.data.Dataset.from_tensor_slices(({"x": line[0]}, line[1])).repeat().batch(14)  # noqa: E731
    job.train(train, steps=10)
    early = [p["y"] for p in job.predict(input_fn, checkpoint_path=str(tmp_path / "model.ckpt-5"))]
    late = [p["y"] for p in job.predict(input_fn, hooks=[Hook()])]
    assert len(early) == len(late) == N and not np.allclose(early, late)
    assert seen == [("infer", {"rate": 0.3})] * 2 and runs == [10] * 5


def test_a_loop_that_stops_early_closes_the_session(tmp_path):
    ours = NPUEstimator(predictor(lambda f: {"y": f["x"]}, []), str(tmp_path), NPURunConfig())
    ended = []

    class Hook(tf_api.SessionRunHook):
        def end(self, session):
            ended.append(True)

    rows = ours.predict(rows_input(), hooks=[Hook()])
    np.testing.assert_array_equal(next(rows)["y"], ROWS[0])
    rows.close()
    np.testing.assert_array_equal([r["y"] for r in ours.predict(rows_input(), hooks=[Hook()])], ROWS)
    assert ended == [True]  # only the one that came to its end


def test_predict_batches_keep(tmp_path):
    shapes = []
    ours = NPUEstimator(
        predictor(lambda f: {"y": f["x"]}, shapes), str(tmp_path), NPURunConfig(), predict_batches="keep"
    )
    assert len(list(ours.predict(rows_input()))) == N and shapes == [None]


@pytest.mark.parametrize(
    "name, allowed", [("eval_batches", "'keep', 'pad', 'drop'"), ("predict_batches", "'pad', 'keep'")]
)
def test_unknown_choices_are_refused(name, allowed):
    with pytest.raises(ValueError, match=f"{name}='trim' is not allowed: it must be one of {allowed}"):
        NPUEstimator(lambda features, labels, mode: None, **{name: "trim"})


# ---- evaluation


def classifier(use_mask, metric=None, regularised=False):
    """A model_fn without training: loss and accuracy of a fixed rule, with or without the mask as weights."""

    def model_fn(features, labels, mode):
        x = features["x"] if isinstance(features, dict) else features
        real = features.pop("is_real_example") if use_mask else 1.0
        v1.get_variable("unused", [], initializer=v1.zeros_initializer())
        logits = scores(x)
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits, weights=real)
        if regularised:
            loss += tf.constant(0.5)
        metrics = {
            "accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1), weights=real),
            "examples": v1.metrics.mean(tf.constant(3.0)),
        }
        if metric:
            metrics["other"] = metric(labels, logits)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics, train_op=tf.no_op())

    return model_fn


LABELS = (np.arange(N) % 5 > 2).astype(np.int64)


def labelled(wrap=lambda x, y: ({"x": x}, y)):
    return lambda: tf.data.Dataset.from_tensor_slices((ROWS, LABELS)).batch(BATCH).map(wrap)


def padded_by_hand():
    return npu_shim.data.pad_last_batch(labelled()()).prefetch(1)


def evaluate(tmp_path, use_mask, input_fn, metric=None, regularised=False, **choice):
    job = NPUEstimator(classifier(use_mask, metric, regularised), str(tmp_path), NPURunConfig(), **choice)
    job.train(labelled() if not use_mask else padded_by_hand, steps=1)
    return job.evaluate(input_fn)


def test_evaluation_with_padding_equals_tensorflow(tmp_path):
    plain = tf.estimator.Estimator(classifier(False), str(tmp_path / "plain"))
    plain.train(labelled(), steps=1)
    wanted = plain.evaluate(labelled())
    kept = evaluate(tmp_path / "kept", False, labelled())
    by_choice = evaluate(tmp_path / "choice", True, labelled(), eval_batches="pad", regularised=False)
    by_hand = evaluate(tmp_path / "hand", True, padded_by_hand)
    assert wanted["accuracy"] == kept["accuracy"] == by_choice["accuracy"] == by_hand["accuracy"]
    for found in (kept, by_choice, by_hand):
        np.testing.assert_allclose(found["loss"], wanted["loss"], rtol=1e-6)


def test_the_last_batch_can_be_dropped(tmp_path):
    dropped = evaluate(tmp_path, False, labelled(), eval_batches="drop")
    right = np.argmax(ROWS.dot(np.arange(6).reshape(3, 2) / 7), 1) == LABELS
    np.testing.assert_allclose(dropped["accuracy"], right[:64].mean(), rtol=1e-6)


UNMASKED = {
    "loss and accuracy": (False, None, "the loss, metric 'accuracy' would count the padding"),
    "another metric": (True, lambda labels, logits: v1.metrics.mean(logits), "but metric 'other' would count"),
}


@pytest.mark.parametrize("use_mask, metric, text", UNMASKED.values(), ids=UNMASKED)
def test_a_metric_that_counts_padding_is_refused(use_mask, metric, text, tmp_path):
    job = NPUEstimator(classifier(use_mask, metric), str(tmp_path), NPURunConfig(), eval_batches="pad")
    job.train(padded_by_hand, steps=1)
    with pytest.raises(ValueError, match=text + ".*weights=features\\['is_real_example'\\]"):
        job.evaluate(labelled())


def test_a_metric_of_keras_that_uses_the_mask(tmp_path):
    def metric(features, labels):
        mean = tf.keras.metrics.Mean()
        mean.update_state(labels, sample_weight=features)
        return mean

    def model_fn(features, labels, mode):
        real = features["is_real_example"]
        v1.get_variable("unused", [], initializer=v1.zeros_initializer())
        loss = v1.losses.absolute_difference(labels, tf.zeros_like(labels), weights=real)
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, eval_metric_ops={"mean": metric(real, labels)}, train_op=tf.no_op()
        )

    job = NPUEstimator(model_fn, str(tmp_path), NPURunConfig(), eval_batches="pad")
    job.train(padded_by_hand, steps=1)
    np.testing.assert_allclose(job.evaluate(labelled())["mean"], LABELS.mean(), rtol=1e-6)


def test_features_must_be_a_dict_for_the_mask(tmp_path):
    with pytest.raises(ValueError, match="adds the feature 'is_real_example', but the features .* are not a dict"):
        evaluate(tmp_path, False, labelled(lambda x, y: (x, y)), eval_batches="pad")


LOGGED = {
    "a remainder": (labelled(), "has 6 of 16 rows (70 examples), for which the NPU recompiles the graph"),
    "of unknown length": (
        lambda: tf.data.Dataset.from_tensor_slices(({"x": ROWS}, LABELS)).filter(lambda f, y: y < 9).batch(BATCH),
        "may have fewer than 16 rows",
    ),
    "of no known size": (
        lambda: labelled()().interleave(lambda f, y: tf.data.Dataset.from_tensors((f, y)), 1),
        "the batch size of the evaluation is unknown",
    ),
    "without remainder": (lambda: tf.data.Dataset.from_tensor_slices(({"x": ROWS}, LABELS)).batch(35), None),
}


@pytest.mark.parametrize("input_fn, text", LOGGED.values(), ids=LOGGED)
def test_one_line_logs_the_cost_of_the_last_partial_batch(input_fn, text, tmp_path, log):
    job = NPUEstimator(classifier(False), str(tmp_path), NPURunConfig())
    job.train(lambda: labelled()().take(1), steps=1)
    for _ in range(2):
        job.evaluate(input_fn)
    said = [line for line in log() if "No example is lost" in line]
    assert len(said) == (text is not None) and all(text in line for line in said)


def test_train_and_evaluate_with_padding(tmp_path):
    job = NPUEstimator(classifier(True), str(tmp_path), NPURunConfig(), eval_batches="pad")
    result, _ = tf.estimator.train_and_evaluate(
        job,
        tf.estimator.TrainSpec(padded_by_hand, max_steps=1),
        tf.estimator.EvalSpec(labelled(), steps=None, start_delay_secs=0, throttle_secs=0),
    )
    right = np.argmax(ROWS.dot(np.arange(6).reshape(3, 2) / 7), 1) == LABELS
    np.testing.assert_allclose(result["accuracy"], right.mean(), rtol=1e-6)


# ---- training


GIVEN = {
    "tensors of a queue": (
        lambda: v1.estimator.inputs.numpy_input_fn({"x": ROWS}, LABELS, batch_size=BATCH, shuffle=False)(),
        True,
    ),
    "tensors of an iterator": (lambda: v1.data.make_one_shot_iterator(labelled()()).get_next(), False),
    "a dataset": (lambda: labelled()(), False),
}


@pytest.mark.parametrize("input_fn, told", GIVEN.values(), ids=GIVEN)
def test_tensors_with_a_dynamic_batch_dimension_are_reported(input_fn, told, tmp_path, log):
    NPUEstimator(classifier(False), str(tmp_path), NPURunConfig()).train(input_fn, steps=1)
    said = [line for line in log() if "the training input_fn returns" in line]
    assert len(said) == told and all("Return the dataset instead" in line for line in said)
