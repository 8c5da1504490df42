"""NPUEstimator works on the CPU like an Estimator."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf

from npu_shim._tensorflow import tf_api
from npu_shim.estimator.keras_to_npu import model_to_npu_estimator
from npu_shim.estimator.npu.npu_config import NPURunConfig
from npu_shim.estimator.npu.npu_estimator import NPUEstimator, NPUEstimatorSpec

pytestmark = pytest.mark.once_tf115

v1 = tf.compat.v1


def dataset(line, batch=16, epochs=None, **kwargs):
    x, y = line
    return lambda: tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat(epochs).batch(batch, **kwargs)


@pytest.fixture
def estimator(tmp_path, linear_model_fn):
    """make(spec=..., **run config) is an NPUEstimator for ``line``."""

    def make(spec=None, params=None, model_dir=None, warm_start_from=None, host_call=None, **config):
        extra = {} if host_call is None else {"host_call": host_call}
        return NPUEstimator(
            linear_model_fn(spec or NPUEstimatorSpec, **extra),
            model_dir=str(model_dir or tmp_path / "model"),
            config=NPURunConfig(tf_random_seed=1, **config),
            params=params,
            warm_start_from=warm_start_from,
        )

    return make


def without_estimator(has_estimator):
    """On a TensorFlow without tf.estimator: asserts the one clear error; True then."""
    if has_estimator:
        return False
    for cls in (NPUEstimator, NPUEstimatorSpec, NPURunConfig):
        with pytest.raises(
            RuntimeError,
            match=f"{cls.__name__} needs tf.estimator, which TensorFlow .* does not have; the "
            "last TensorFlow that has it is 2.15",
        ):
            cls(mode="train")
    with pytest.raises(RuntimeError, match="model_to_npu_estimator needs tf.estimator"):
        model_to_npu_estimator()
    return True


def test_trains_evaluates_predicts_and_exports(has_estimator, estimator, line, tmp_path):
    if without_estimator(has_estimator):
        return
    job = estimator(precision_mode="allow_mix_precision")
    assert isinstance(job, tf.estimator.Estimator) and isinstance(job, v1.estimator.Estimator)
    assert job.train(dataset(line), steps=60) is job
    result = job.evaluate(dataset(line, 16, 1))
    assert result["mae"] < 0.02 and result["global_step"] == 60
    predicted = list(job.predict(v1.estimator.inputs.numpy_input_fn({"x": line[0]}, shuffle=False)))
    assert len(predicted) == len(line[0])  # 70 rows, though 70 is no multiple of the batch
    np.testing.assert_allclose([p["y"][0] for p in predicted], line[1][:, 0], atol=0.1)

    def serving():
        x = v1.placeholder(tf.float32, [None, 1], name="x")
        return tf.estimator.export.ServingInputReceiver({"x": x}, x)

    folder = job.export_saved_model(str(tmp_path / "export"), serving)
    with tf.Graph().as_default(), v1.Session() as sess:
        signature = v1.saved_model.load(sess, ["serve"], tf.compat.as_str(folder)).signature_def["serving_default"]
        outputs = {name: info.name for name, info in signature.outputs.items()}
        inputs = next(iter(signature.inputs.values())).name
        assert sess.run(outputs, {inputs: line[0][:3]})["y"].shape == (3, 1)


def test_evaluation_counts_every_sample(has_estimator, estimator, line):
    if without_estimator(has_estimator):
        return
    job = estimator()
    job.train(dataset(line), steps=1)
    x, y = line
    by_16 = job.evaluate(dataset(line, 16, 1))["mae"]
    at_once = job.evaluate(dataset(line, 70, 1))["mae"]
    np.testing.assert_allclose(by_16, at_once, rtol=1e-6)


def trained(job):
    return {name: job.get_variable_value(name) for name in job.get_variable_names()}


@pytest.mark.parametrize("spec", ["npu", "plain"])
def test_iterations_per_loop_trains_the_same_steps(has_estimator, estimator, line, log, tmp_path, spec):
    if without_estimator(has_estimator):
        return
    spec = NPUEstimatorSpec if spec == "npu" else tf.estimator.EstimatorSpec
    seen = []

    class Seen(tf_api.SessionRunHook):
        def after_run(self, run_context, run_values):
            seen.append(int(run_context.session.run(v1.train.get_global_step(run_context.session.graph))))

    jobs = [
        estimator(spec=spec, model_dir=tmp_path / str(n), iterations_per_loop=n, save_checkpoints_steps=20)
        for n in (1, 10)
    ]
    for job in jobs:
        del seen[:]
        job.train(dataset(line, 14), steps=30, hooks=[Seen()])
        job.train(dataset(line, 14), max_steps=60, hooks=[Seen()])
    assert seen == [10, 20, 30, 40, 50, 60]
    step_by_step, looped = map(trained, jobs)
    for name in step_by_step:
        np.testing.assert_array_equal(looped[name], step_by_step[name], err_msg=name)
    said = "iterations_per_loop=10: each session.run makes 10 training steps, and hooks run every 10 steps."
    assert len([m for m in log() if said in m]) == 2 and not [m for m in log() if "multiple" in m]
    (entry,) = jobs[1].config.session_config.graph_options.rewrite_options.custom_optimizers
    assert entry.parameter_map["iterations_per_loop"].i == 10


@pytest.mark.parametrize(
    "first, then, end, told",
    [
        (
            dict(steps=25),
            {},
            30,
            "25 training steps are not a multiple of iterations_per_loop=10, so training makes 30 steps, "
            "to global step 30",
        ),
        (dict(steps=10), dict(max_steps=15), 20, "5 training steps are not a multiple of iterations_per_loop=10"),
    ],
    ids=["steps", "max_steps"],
)
def test_the_last_run_makes_all_its_steps(has_estimator, estimator, line, log, first, then, end, told):
    if without_estimator(has_estimator):
        return
    job = estimator(iterations_per_loop=10)
    job.train(dataset(line, 14), **first)
    if then:
        job.train(dataset(line, 14), **then)
    assert job.get_variable_value("global_step") == end
    assert len([m for m in log() if told in m]) == 1


def test_no_step_is_lost_at_the_end_of_the_input(has_estimator, estimator, line, tmp_path):
    if without_estimator(has_estimator):
        return
    jobs = [estimator(model_dir=tmp_path / str(n), iterations_per_loop=n) for n in (1, 10, 5)]
    for job in jobs:
        job.train(dataset(line, 10, epochs=5), max_steps=1000)  # 35 batches
        assert job.get_variable_value("global_step") == 35
        np.testing.assert_array_equal(job.get_variable_value("w"), jobs[0].get_variable_value("w"))


@pytest.mark.parametrize("kind", ["summaries in the graph", "a function of arrays"])
def test_host_call_sees_every_step_of_a_loop(has_estimator, estimator, line, tmp_path, kind):
    if without_estimator(has_estimator):
        return
    seen = []

    def of_arrays(step, loss):
        seen.append((int(step), float(loss)))

    def in_graph(step, loss):
        return v1.py_func(of_arrays, [step, loss], [])

    for n in (1, 10):
        job = estimator(
            model_dir=tmp_path / str(n),
            iterations_per_loop=n,
            host_call=lambda step, loss: (in_graph if "graph" in kind else of_arrays, [step, loss]),
        )
        job.train(dataset(line, 14), steps=20)
    losses = [loss for _, loss in seen]
    assert len(losses) == 40 and losses[20:] == losses[:20]


def test_intervals_that_are_not_a_multiple_of_the_loop_are_reported(has_estimator, estimator, line, log):
    if without_estimator(has_estimator):
        return
    estimator(iterations_per_loop=10, save_checkpoints_steps=25, log_step_count_steps=20).train(
        dataset(line, 14), steps=10
    )
    told = [m for m in log() if "is not a multiple of iterations_per_loop=10" in m]
    assert len(told) == 1 and "save_checkpoints_steps=25" in told[0]


def test_training_input_gets_a_static_batch(has_estimator, tmp_path, line, log):
    if without_estimator(has_estimator):
        return
    shapes = []

    def model_fn(features, labels, mode):
        shapes.append((mode, features["x"].shape[0]))
        loss = tf.reduce_mean(features["x"])
        with tf.control_dependencies([loss]):
            step = v1.train.get_or_create_global_step().assign_add(1)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)

    job = NPUEstimator(model_fn, str(tmp_path))
    job.train(dataset(line, 32, 1))
    job.evaluate(dataset(line, 32, 1))
    assert [(m, tf.compat.dimension_value(s)) for m, s in shapes] == [("train", 32), ("eval", None)]
    assert job.get_variable_value("global_step") == 2
    assert [m for m in log() if "drops" in m] == [
        "npu_shim: batch size 32 made static; drops the same 6 of 70 examples per epoch."
    ]


def test_a_training_set_smaller_than_a_batch_is_refused(has_estimator, estimator, line):
    if without_estimator(has_estimator):
        return
    with pytest.raises(ValueError, match="has 70 examples, fewer than one batch of 100.*batch size of at most 70"):
        estimator().train(dataset(line, 100, 1))


CONFIGS = [
    ("none", lambda: None, ""),
    (
        "a plain RunConfig",
        lambda: tf.estimator.RunConfig(),
        "is RunConfig, but NPUEstimator needs an NPURunConfig. Write",
    ),
    ("something else", lambda: 3, "config=3 is int, but NPUEstimator needs"),
]


@pytest.mark.parametrize("make, text", [c[1:] for c in CONFIGS], ids=[c[0] for c in CONFIGS])
def test_config(has_estimator, linear_model_fn, make, text):
    if without_estimator(has_estimator):
        return
    if not text:
        assert isinstance(NPUEstimator(linear_model_fn(NPUEstimatorSpec), config=make()).config, NPURunConfig)
        return
    with pytest.raises(ValueError, match=text):
        NPUEstimator(linear_model_fn(NPUEstimatorSpec), config=make())


def test_arguments_of_a_tpu_estimator_are_refused_with_the_fix(has_estimator, linear_model_fn):
    if without_estimator(has_estimator):
        return
    with pytest.raises(TypeError, match="no argument 'use_tpu', which is one of TPUEstimator. Remove use_tpu, eval_ba"):
        NPUEstimator(linear_model_fn(NPUEstimatorSpec), use_tpu=False, eval_batch_size=8)


def test_a_run_config_from_npu_run_config_init_is_accepted(has_estimator, linear_model_fn, tmp_path):
    if without_estimator(has_estimator):
        return
    from npu_shim.config.rewriters import npu_run_config_init

    plain = tf.estimator.RunConfig(model_dir=str(tmp_path), save_summary_steps=9, tf_random_seed=4)
    config = NPUEstimator(linear_model_fn(NPUEstimatorSpec), config=npu_run_config_init(run_config=plain)).config
    assert (config.model_dir, config.save_summary_steps, config.tf_random_seed) == (str(tmp_path), 9, 4)


def test_a_handwritten_entry_is_merged(has_estimator, estimator):
    if without_estimator(has_estimator):
        return
    by_hand = v1.ConfigProto(log_device_placement=True)
    entry = by_hand.graph_options.rewrite_options.custom_optimizers.add(name="NpuOptimizer")
    entry.parameter_map["hcom_parallel"].b = False  # beats the argument's default
    entry.parameter_map["precision_mode"].s = b"force_fp32"  # loses to an argument that is given
    config = estimator(session_config=by_hand, precision_mode="allow_mix_precision").config.session_config
    (merged,) = config.graph_options.rewrite_options.custom_optimizers
    assert config.log_device_placement
    assert merged.parameter_map["hcom_parallel"].b is False
    assert merged.parameter_map["precision_mode"].s == b"allow_mix_precision"
    assert merged.parameter_map["enable_data_pre_proc"].b is True


def test_job_start_file(has_estimator, linear_model_fn, tmp_path):
    if without_estimator(has_estimator):
        return
    good = tmp_path / "job.json"
    good.write_text(json.dumps({"job_id": "1"}))
    NPUEstimator(linear_model_fn(NPUEstimatorSpec), str(tmp_path), job_start_file=str(good))
    for name, text in (("nowhere.json", "cannot be read"), (str(good), "must hold a JSON object")):
        good.write_text("[]")
        with pytest.raises(ValueError, match=text):
            NPUEstimator(linear_model_fn(NPUEstimatorSpec), str(tmp_path), job_start_file=name)


def test_keras_model_to_estimator(has_estimator, line, tmp_path):
    if without_estimator(has_estimator):
        return
    keras = v1.keras
    with tf.Graph().as_default():
        model = keras.Sequential([keras.layers.Dense(1, input_shape=(1,), name="d")])
        model.compile(v1.train.GradientDescentOptimizer(0.3), "mse")
        start = model.get_weights()[0]
        job = model_to_npu_estimator(keras_model=model, model_dir=str(tmp_path), config=NPURunConfig())
    assert isinstance(job, NPUEstimator)
    x, y = line
    job.train(lambda: tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(14), steps=60)
    moved = job.get_variable_value([n for n in job.get_variable_names() if n.startswith("d/kernel")][0])
    assert abs(moved[0, 0] - 3) < abs(start[0, 0] - 3) and abs(moved[0, 0] - 3) < 0.5


def test_subclassed_keras_model_is_reported(has_estimator, tmp_path):
    class Own(v1.keras.Model):
        def call(self, x):
            return x

    if without_estimator(has_estimator):
        return
    with v1.Graph().as_default(), pytest.warns(UserWarning, match="functional and Sequential models only. Build own"):
        model = Own(name="own")
        model.compile(v1.train.GradientDescentOptimizer(0.3), "mse")
        model_to_npu_estimator(keras_model=model, model_dir=str(tmp_path), config=NPURunConfig())


HOST_CALLS = {
    "ops it builds run in every step": lambda seen: (
        lambda step, loss: v1.py_func(lambda value: seen.append(float(value)) or np.int64(0), [loss], tf.int64)
    ),
    "a Python function is called with values": lambda seen: lambda step, loss: seen.append(float(loss)),
}


@pytest.mark.parametrize("name", HOST_CALLS)
def test_host_call(has_estimator, estimator, line, name):
    if without_estimator(has_estimator):
        return
    seen = []
    function = HOST_CALLS[name](seen)
    job = estimator(host_call=lambda step, loss: (function, [step, loss]))
    job.train(dataset(line), steps=5)
    assert len(seen) == 5
    job.evaluate(dataset(line, 35, 1))
    assert len(seen) == 7


SPEC_WRONG = [
    (3, ValueError, "host_call=3 is not allowed: it must be a pair"),
    ((1, 2, 3), ValueError, "host_call has 3 items"),
    ((1, []), TypeError, r"host_call\[0\]=1 is not allowed: it must be a function"),
    ((lambda a: a, 5), ValueError, r"host_call\[1\]=5 is not allowed: it must be a list, tuple or dict"),
    ((lambda a: a, [1, 2]), RuntimeError, "has 2 tensors, but its function takes 1 arguments"),
]


@pytest.mark.parametrize("host_call, error, text", SPEC_WRONG, ids=[w[2] for w in SPEC_WRONG])
def test_wrong_host_calls(has_estimator, host_call, error, text):
    if without_estimator(has_estimator):
        return
    with tf.Graph().as_default(), pytest.raises(error, match=text):
        NPUEstimatorSpec("infer", predictions=tf.constant(1), host_call=host_call)


def test_spec_is_an_estimator_spec_and_keeps_host_call(has_estimator):
    if without_estimator(has_estimator):
        return
    with tf.Graph().as_default():
        call = (lambda *a: None, [tf.constant(1)])
        spec = NPUEstimatorSpec("eval", loss=tf.constant(1.0), host_call=call)
        replaced = spec._replace(predictions=tf.constant(2))
        assert isinstance(replaced, tf.estimator.EstimatorSpec) and replaced.host_call is call
        assert replaced.predictions is not None and spec._replace(host_call=None).host_call is None
