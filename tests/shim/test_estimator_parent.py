"""An NPUEstimator gives the same results as an Estimator for the same calls."""

from __future__ import annotations

import glob
import os

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from npu_shim._tensorflow import tf_api
from npu_shim.npu_init import NPUEstimator, NPURunConfig

pytestmark = [pytest.mark.once_tf115, pytest.mark.slow]

v1 = tf.compat.v1
X = np.linspace(-1, 1, 64).astype(np.float32).reshape(64, 1)
Y = 3 * X - 1


def model_fn(features, labels, mode, params, config):
    """A line with noise from the graph's random generator; params: rate, hidden."""
    params = params or {}
    est = tf.estimator
    w = v1.get_variable("w", [1, 1], initializer=v1.random_normal_initializer())
    b = v1.get_variable("b", [1], initializer=v1.zeros_initializer())
    y = tf.matmul(features["x"], w) + b
    exports = {"serving_default": est.export.PredictOutput({"y": y})}
    if mode == est.ModeKeys.PREDICT:
        return est.EstimatorSpec(
            mode,
            predictions={"y": y, "twice": 2 * y},
            export_outputs=exports,
            prediction_hooks=params.get("prediction_hooks", ()),
        )
    loss = tf.reduce_mean(tf.square(y - labels))
    v1.summary.scalar("seen_loss", loss)
    step = v1.train.get_or_create_global_step()
    rate = params.get("rate", 0.1) + 0.01 * v1.random_uniform([])
    train = v1.train.MomentumOptimizer(rate, 0.9).minimize(loss, step)
    saver = v1.train.Saver(max_to_keep=7) if params.get("own_saver") else None
    return est.EstimatorSpec(
        mode,
        loss=loss,
        train_op=train,
        eval_metric_ops={"mae": v1.metrics.mean_absolute_error(labels, y)},
        training_hooks=params.get("training_hooks", ()),
        training_chief_hooks=params.get("chief_hooks", ()),
        evaluation_hooks=params.get("evaluation_hooks", ()),
        scaffold=v1.train.Scaffold(saver=saver) if saver else None,
    )


def data(batch=8, epochs=None):
    return lambda: tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat(epochs).batch(batch, drop_remainder=True)


def serving():
    x = v1.placeholder(tf.float32, [None, 1], "x")
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


def supervised():
    x, y = v1.placeholder(tf.float32, [8, 1], "x"), v1.placeholder(tf.float32, [8, 1], "y")
    return tf.estimator.experimental.build_raw_supervised_input_receiver_fn({"x": x}, y)()


class Calls(tf_api.SessionRunHook):
    """Records what is called and the global step at that time."""

    def __init__(self, name="hook"):
        self.name, self.seen = name, []

    def begin(self):
        self.seen.append("begin")

    def after_create_session(self, session, coord):
        self.seen.append("session")

    def after_run(self, run_context, run_values):
        self.seen.append("run")

    def end(self, session):
        self.seen.append("end")


class Listener(v1.train.CheckpointSaverListener):
    def __init__(self):
        self.seen = []

    def begin(self):
        self.seen.append("begin")

    def before_save(self, session, step):
        self.seen.append(("before", int(step)))

    def after_save(self, session, step):
        self.seen.append(("after", int(step)))

    def end(self, session, step):
        self.seen.append(("end", int(step)))


def weights(job):
    return {name: job.get_variable_value(name) for name in job.get_variable_names()}


def files(job, *patterns):
    found = [f for p in patterns for f in glob.glob(os.path.join(job.model_dir, p))]
    return sorted(os.path.relpath(f, job.model_dir) for f in found)


def scenario_train(make):
    """Steps, then steps again, then max_steps that are reached already."""
    job = make()
    job.train(data(), steps=7)
    job.train(data(), steps=5)
    job.train(data(), max_steps=12)
    job.train(data(), max_steps=15)
    return weights(job)


def scenario_listeners(make):
    listener, job = Listener(), make(save_checkpoints_steps=4)
    job.train(data(), steps=10, saving_listeners=[listener])
    return listener.seen


def scenario_checkpoints(make):
    job = make(save_checkpoints_steps=2, keep_checkpoint_max=3)
    job.train(data(), steps=11)
    return files(job, "model.ckpt-*.index"), os.path.basename(job.latest_checkpoint())


def scenario_own_saver(make):
    job = make({"own_saver": True}, save_checkpoints_steps=1)
    job.train(data(), steps=12)
    return files(job, "model.ckpt-*.index")


def scenario_save_secs(make):
    job = make(save_checkpoints_secs=3600)
    job.train(data(), steps=3)
    return files(job, "model.ckpt-*.index")


def scenario_hooks(make):
    hooks = {name: Calls() for name in ("training_hooks", "chief_hooks", "evaluation_hooks", "prediction_hooks", "own")}
    job = make({name: (hook,) for name, hook in hooks.items() if name != "own"})
    job.train(data(), hooks=(hooks["own"],), steps=3)
    job.evaluate(data(epochs=1), hooks=[hooks["own"]])
    list(job.predict(data(epochs=1), hooks=[hooks["own"]]))
    return {name: hook.seen for name, hook in hooks.items()}


def scenario_evaluate(make):
    job = make(save_checkpoints_steps=2)
    job.train(data(), steps=4)
    first = os.path.join(job.model_dir, "model.ckpt-2")
    return [
        job.evaluate(data(epochs=1)),
        job.evaluate(data(), steps=3, name="other"),
        job.evaluate(data(epochs=1), checkpoint_path=first),
        files(job, "eval*"),
        job.eval_dir("other")[-10:],
    ]


def scenario_predict(make):
    job = make()
    job.train(data(), steps=4)
    rows = list(job.predict(data(epochs=1)))
    keys = list(job.predict(data(epochs=1), predict_keys=["twice"]))
    batches = list(job.predict(data(epochs=1), yield_single_examples=False))
    return [r["y"] for r in rows], [sorted(k) for k in keys], [b["twice"].shape for b in batches]


def scenario_export(make):
    job = make()
    job.train(data(), steps=2)
    assets = os.path.join(job.model_dir, "words.txt")
    with open(assets, "w") as file:
        file.write("a word")
    one = job.export_saved_model(job.model_dir + "/one", serving, assets_extra={"words.txt": assets})
    every = job.experimental_export_all_saved_models(
        job.model_dir + "/all", {"infer": serving, "eval": supervised, "train": supervised}
    )
    with open(os.path.join(tf.compat.as_str(every), "saved_model.pb"), "rb") as file:
        graphs = saved_model_pb2.SavedModel.FromString(file.read()).meta_graphs
    return [
        sorted(os.listdir(one)),
        os.listdir(os.path.join(tf.compat.as_str(one), "assets.extra")),
        sorted(list(graph.meta_info_def.tags) for graph in graphs),
    ]


def scenario_warm_start(make):
    job = make()
    job.train(data(), steps=5)
    settings = tf.estimator.WarmStartSettings(job.model_dir, vars_to_warm_start="w")
    second = make(warm_start_from=settings)
    second.train(data(), steps=1)
    return weights(second)


def scenario_train_and_evaluate(make):
    job = make(save_checkpoints_steps=5)
    listener = Listener()
    exporters = [tf.estimator.FinalExporter("final", serving), tf.estimator.BestExporter("best", serving)]
    spec = tf.estimator.TrainSpec(data(), max_steps=12)
    if "saving_listeners" in spec._fields:  # not in TF 1.15
        spec = spec._replace(saving_listeners=(listener,))
    result, exported = tf.estimator.train_and_evaluate(
        job,
        spec,
        tf.estimator.EvalSpec(data(epochs=1), steps=None, exporters=exporters, start_delay_secs=0, throttle_secs=0),
    )
    return result, len(exported), files(job, "export/*"), listener.seen


def scenario_input_fn_arguments(make):
    got = []

    def input_fn(mode, params, config):
        got.append((mode, dict(params), config.save_checkpoints_steps))
        return data(epochs=1)()

    job = make({"rate": 0.2}, save_checkpoints_steps=9)
    job.train(input_fn, steps=1)
    job.evaluate(input_fn)
    return got, job.params["rate"]


def scenario_summaries(make):
    job = make(save_summary_steps=2)
    job.train(data(), steps=6)
    seen = [
        (e.step, v.tag)
        for f in glob.glob(job.model_dir + "/events*")
        for e in v1.train.summary_iterator(f)
        for v in e.summary.value
        if v.tag == "seen_loss"
    ]
    return sorted(seen)


SCENARIOS = {
    name[len("scenario_") :]: value for name, value in sorted(globals().items()) if name.startswith("scenario_")
}


def same(got, expected):
    if isinstance(expected, dict):
        assert sorted(got) == sorted(expected)
        for key in expected:
            same(got[key], expected[key])
    elif isinstance(expected, (list, tuple)):
        assert len(got) == len(expected)
        for one, other in zip(got, expected):
            same(one, other)
    else:
        np.testing.assert_array_equal(got, expected)


def maker(cls, config_cls, root):
    """make(params, **run config) is a new job of a class, in a folder of its own."""
    count = iter(range(100))

    def make(params=None, warm_start_from=None, **config):
        config.setdefault("save_summary_steps", 100)
        config.setdefault("save_checkpoints_steps", None if "save_checkpoints_secs" in config else 100)
        return cls(
            model_fn,
            str(root / str(next(count))),
            config_cls(tf_random_seed=3, **config),
            params or {},
            warm_start_from=warm_start_from,
        )

    return make


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_same_as_an_estimator(has_estimator, name, tmp_path):
    if not has_estimator:
        with pytest.raises(RuntimeError, match="NPUEstimator needs tf.estimator"):
            NPUEstimator(model_fn)
        return
    expected = SCENARIOS[name](maker(tf.estimator.Estimator, tf.estimator.RunConfig, tmp_path / "tf"))
    same(SCENARIOS[name](maker(NPUEstimator, NPURunConfig, tmp_path / "npu")), expected)


def test_model_dir_precedence(has_estimator, tmp_path):
    if not has_estimator:
        return
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    assert NPUEstimator(model_fn, config=NPURunConfig(model_dir=one)).model_dir == one
    assert NPUEstimator(model_fn, one, NPURunConfig()).model_dir == one
    assert NPUEstimator(model_fn, one, NPURunConfig(model_dir=one)).model_dir == one
    with pytest.raises(ValueError, match="model_dir"):
        NPUEstimator(model_fn, one, NPURunConfig(model_dir=other))
    assert os.path.isdir(NPUEstimator(model_fn).model_dir)
