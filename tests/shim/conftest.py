"""One quiet process, no patch left behind, and small Estimator jobs to run."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import npu_shim
from npu_shim._tensorflow import tf_api

# That a TensorFlow without tf.estimator says so is tested in test_estimator.py.
collect_ignore = [] if tf_api.estimator_namespace() else ["test_estimator_batches.py"]
# That TensorFlow 1 has no backports is tested in test_star_import.py.
collect_ignore += ["test_backports.py"] if tf.__version__.startswith("1.") else []


@pytest.fixture(autouse=True)
def one_quiet_process(monkeypatch):
    for name in ("RANK_ID", "RANK_SIZE", "RANK_TABLE_FILE", "JOB_ID", "CM_CHIEF_IP", "CM_WORKER_SIZE", "TF_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NPU_SHIM_FALLBACK", "silent")
    yield
    npu_shim.uninstall()


@pytest.fixture
def log(caplog):
    """log() is what npu_shim said through TensorFlow's logger, at INFO and above."""
    logger = tf_api.logging
    before = logger.get_verbosity()
    logger.set_verbosity(logger.INFO)
    yield lambda: [r.getMessage() for r in caplog.records if r.getMessage().startswith("npu_shim:")]
    logger.set_verbosity(before)


@pytest.fixture
def has_estimator():
    """True if this TensorFlow has tf.estimator. A test asserts the result with it, and the error without it."""
    return tf_api.estimator_namespace() is not None


@pytest.fixture(scope="session")
def line():
    """A regression that is learned in no time: y = 3 x - 1, 70 examples."""
    x = np.linspace(-1, 1, 70).astype(np.float32).reshape(70, 1)
    return x, 3 * x - 1


@pytest.fixture
def linear_model_fn():
    """make(spec class, name=function(step, loss)) is a model_fn for ``line`` whose spec has those fields too."""

    def make(spec_class, **extra):
        def model_fn(features, labels, mode, params):
            x = features["x"] if isinstance(features, dict) else features
            w = tf.compat.v1.get_variable("w", [1, 1], initializer=tf.compat.v1.zeros_initializer())
            b = tf.compat.v1.get_variable("b", [1], initializer=tf.compat.v1.zeros_initializer())
            y = tf.matmul(x, w) + b
            if mode == "infer":
                return spec_class(mode=mode, predictions={"y": y})
            loss = tf.reduce_mean(tf.square(y - labels))
            step = tf.compat.v1.train.get_or_create_global_step()
            train = tf.compat.v1.train.GradientDescentOptimizer((params or {}).get("rate", 0.3)).minimize(loss, step)
            metrics = {"mae": tf.compat.v1.metrics.mean_absolute_error(labels, y)}
            made = {name: value(step, loss) for name, value in extra.items()}
            return spec_class(mode=mode, loss=loss, train_op=train, eval_metric_ops=metrics, **made)

        return model_fn

    return make
