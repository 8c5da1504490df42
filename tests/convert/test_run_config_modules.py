"""Run configurations of all modules, and arguments that the NPU does not support."""

from __future__ import annotations

import pytest
from convert_tf2npu.engine.converter import FINDING, Converter
from convert_tf2npu.engine.settings import Settings

HEAD = "import tensorflow as tf\n"
USE = "e = tf.estimator.Estimator(f, config=c)\n"
HOMES = {
    "the public one": 'c = tf.estimator.RunConfig("d")\n',
    "compat": 'c = tf.compat.v1.estimator.RunConfig("d")\n',
    "the module in TensorFlow": 'from tensorflow.python.estimator import run_config\nc = run_config.RunConfig("d")\n',
    "the class in TensorFlow": 'from tensorflow.python.estimator.run_config import RunConfig\nc = RunConfig("d")\n',
    "the package of Estimators": 'from tensorflow_estimator.python.estimator import run_config as r\nc = r.RunConfig("d")\n',
    "the public part of that package": 'from tensorflow_estimator import estimator as est\nc = est.RunConfig("d")\n',
    "an object of the script": 'class A:\n    est = tf.estimator\nc = A.est.RunConfig("d")\n',
}


@pytest.mark.parametrize("text", list(HOMES.values()), ids=list(HOMES))
def test_run_config_of(text: str) -> None:
    new = Converter().convert((HEAD + text + USE).encode()).new
    assert new is not None and b'c = NPURunConfig(model_dir="d")\ne = NPUEstimator(f, config=c)\n' in new


OTHERS = {
    "contrib.learn": (
        'from tensorflow.contrib.learn import RunConfig\nc = RunConfig(model_dir="d")\n',
        'c = RunConfig(model_dir="d", save_summary_steps=0)',
    ),
    "contrib.learn by its module": (
        "from tensorflow.contrib.learn.python.learn.estimators import run_config\nc = run_config.RunConfig()\n",
        "c = run_config.RunConfig(save_summary_steps=0)",
    ),
    "contrib.tpu": (
        "c = tf.contrib.tpu.RunConfig(cluster)\n",
        "c = tf.contrib.tpu.RunConfig(cluster, save_summary_steps=0)",
    ),
    "contrib.tpu by its module": (
        "from tensorflow.contrib.tpu.python.tpu import tpu_config\nc = tpu_config.RunConfig()\n",
        "c = tpu_config.RunConfig(save_summary_steps=0)",
    ),
    "estimator.tpu": ("c = tf.estimator.tpu.RunConfig()\n", "c = tf.estimator.tpu.RunConfig(save_summary_steps=0)"),
    "from one place or the other": (
        "try:\n    from tensorflow.contrib.tpu import RunConfig\nexcept ImportError:\n"
        "    from tensorflow.estimator.tpu import RunConfig\nc = RunConfig()\n",
        "c = RunConfig(save_summary_steps=0)",
    ),
}


@pytest.mark.parametrize("text,part", list(OTHERS.values()), ids=list(OTHERS))
def test_other_run_configs_keep_their_class_and_are_prepared(text: str, part: str) -> None:
    new = Converter().convert((HEAD + text + USE).encode()).new
    assert new is not None and part + "\n" in new.decode()
    assert b"e = tf.estimator.Estimator(f, config=npu_run_config_init(run_config=c))\n" in new
    assert Converter().convert(new).new is None


FOREIGN = ["device_fn=place", 'protocol="grpc"', "train_distribute=s", "eval_distribute=s", "experimental_distribute=s"]


@pytest.mark.parametrize("argument", FOREIGN)
def test_a_run_config_with_an_unsupported_argument_keeps_its_class(argument: str) -> None:
    text = HEAD + f"c = tf.estimator.RunConfig({argument})\n" + USE
    new = Converter().convert(text.encode()).new
    assert (
        new is not None
        and (f"c = npu_run_config_init(run_config=tf.estimator.RunConfig({argument}, save_summary_steps=0))\n")
        in new.decode()
    )
    assert b"NPURunConfig(" not in new and Converter().convert(new).new is None


def test_summaries_that_the_script_sets_are_kept() -> None:
    for text in ("c = tf.contrib.tpu.RunConfig(save_summary_steps=0)\n", "c = tf.contrib.tpu.RunConfig(**kw)\n"):
        assert Converter().convert((HEAD + text).encode()).new is None
    result = Converter().convert((HEAD + "c = tf.contrib.tpu.RunConfig(save_summary_steps=100)\n").encode())
    assert result.new is None and [(d.code, d.kind) for d in result.diagnostics] == [("NPU102", FINDING)]


@pytest.mark.parametrize("distributed,reported", [("", 0), ("horovod", 1), ("tf_strategy", 1)])
def test_seconds_between_checkpoints_are_reported_in_a_distributed_job(distributed: str, reported: int) -> None:
    text = HEAD + "c = tf.estimator.RunConfig(save_checkpoints_secs=600)\n"
    result = Converter(Settings(distributed=distributed)).convert(text.encode())
    assert (
        len([d for d in result.diagnostics if "Replace save_checkpoints_secs with save_checkpoints_steps" in d.message])
        == reported
    )


HIDDEN = {
    "a RunConfig": "c = tf.estimator.RunConfig(**kw)\n",
    "an Estimator": "e = tf.estimator.Estimator(*args)\n",
    "a ready-made Estimator": "e = tf.estimator.DNNClassifier(**kw)\n",
}


@pytest.mark.parametrize("text", list(HIDDEN.values()), ids=list(HIDDEN))
def test_hidden_arguments_are_reported(text: str) -> None:
    result = Converter().convert((HEAD + text).encode())
    assert result.new is None and [d.kind for d in result.diagnostics] == [FINDING]
