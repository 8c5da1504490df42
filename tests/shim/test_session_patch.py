"""install() and uninstall(): patched sessions and restored originals."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import npu_shim
from npu_shim._tensorflow import tf_api
from npu_shim.config.install import decorator_tf_session
from npu_shim.config.keras_session import close_session, npu_clear_session, set_keras_session_npu_config

v1 = tf.compat.v1
SESSIONS = [v1.Session, v1.InteractiveSession]


def has_npu(sess):
    names = [c.name for c in sess._config.graph_options.rewrite_options.custom_optimizers] if sess._config else []
    return names.count("NpuOptimizer") == 1


@pytest.fixture(params=SESSIONS, ids=lambda s: s.__name__)
def session_class(request):
    return request.param


def test_a_class_that_keeps_no_config_gets_one_too():
    class Remote:
        @decorator_tf_session
        def __init__(self, target="", graph=None, config=None):
            self.given = config

    (entry,) = Remote().given.graph_options.rewrite_options.custom_optimizers
    assert entry.name == "NpuOptimizer" and not hasattr(Remote(), "_config")


@pytest.mark.parametrize(
    "arguments",
    [
        dict(),
        dict(config=None),
        dict(config=v1.ConfigProto(log_device_placement=True)),
        dict(target=""),
    ],
    ids=["no argument", "no config", "a config", "a target"],
)
def test_every_new_session_carries_the_config(session_class, arguments):
    npu_shim.install()
    with tf.Graph().as_default():
        sess = session_class(**arguments)
        assert has_npu(sess) and sess.run(tf.constant(1)) == 1
        if arguments.get("config"):
            assert sess._config.log_device_placement
        sess.close()


def test_positional_arguments_still_work(session_class):
    npu_shim.install()
    graph = tf.Graph()
    sess = session_class("", graph, v1.ConfigProto())
    assert sess.graph is graph and has_npu(sess)
    sess.close()


def test_install_and_uninstall_are_idempotent_and_originals_are_restored():
    before = [s.__dict__["__init__"] for s in SESSIONS]
    npu_shim.uninstall()
    npu_shim.install()
    installed = [s.__dict__["__init__"] for s in SESSIONS]
    assert all(a is not b for a, b in zip(before, installed))
    npu_shim.install()
    assert [s.__dict__["__init__"] for s in SESSIONS] == installed
    npu_shim.uninstall()
    npu_shim.uninstall()
    assert all(a is b for a, b in zip(before, [s.__dict__["__init__"] for s in SESSIONS]))


def test_a_monitored_session_carries_the_config():
    npu_shim.install()
    with tf.Graph().as_default():
        v1.train.get_or_create_global_step()
        with v1.train.MonitoredTrainingSession() as sess:
            assert has_npu(sess._tf_sess())


def test_a_wrong_config_is_refused_at_the_session(session_class):
    npu_shim.install()
    with tf.Graph().as_default(), pytest.raises(TypeError, match="must be a tf.compat.v1.ConfigProto or None"):
        session_class(config={"a": 1})


def test_error_policy_forbids_the_cpu(monkeypatch):
    monkeypatch.setenv("NPU_SHIM_FALLBACK", "error")
    before = v1.Session.__init__
    with pytest.raises(RuntimeError, match="There is no NPU here .*NPU_SHIM_FALLBACK=error forbids the CPU"):
        npu_shim.install()
    assert v1.Session.__init__ is before


def test_keras_session_has_the_config_and_trains():
    if not tf_api.has_keras_sessions():
        for helper in (set_keras_session_npu_config, npu_clear_session):
            with pytest.raises(RuntimeError, match=f"{helper.__name__} needs Keras sessions.*2.15"):
                helper()
        return
    keras = v1.keras
    with tf.Graph().as_default():
        sess = set_keras_session_npu_config(v1.ConfigProto(log_device_placement=False))
        assert has_npu(sess) and keras.backend.get_session() is sess
        model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
        model.compile("sgd", "mse")
        model.fit(np.ones([8, 2]), np.ones([8, 1]), verbose=0)
        close_session(sess)
    npu_clear_session()
    assert has_npu(keras.backend.get_session())
    keras.backend.clear_session()


def test_after_install_keras_creates_its_session_with_the_config():
    if not tf_api.has_keras_sessions():
        assert not hasattr(v1.keras.backend, "get_session")
        return
    npu_shim.install()
    v1.keras.backend.clear_session()
    with tf.Graph().as_default():
        assert has_npu(v1.keras.backend.get_session())
    v1.keras.backend.clear_session()
