"""On a card, options of a command reach every session that runs on the NPU, and the device of TensorFlow 2."""

from __future__ import annotations

from typing import Any, Iterator

import pytest
import tensorflow as tf

import npu_shim
from npu_shim._host import host_device
from npu_shim._tensorflow import patches, tf_api
from npu_shim.config import given_options
from npu_shim.config.parameter_map import find_entry, read_options

v1 = tf.compat.v1
DUMP = {"enable_dump": True, "enable_dump_debug": False, "dump_path": "/tmp", "dump_step": "0|5", "dump_mode": "all"}


@pytest.fixture
def given() -> Iterator[None]:
    """Give the options of a dump, where no other test has installed npu_shim: its sessions report the script's config."""
    patches.restore_all()
    given_options.apply_to_new_sessions({**DUMP, "precision_mode": "force_fp16"})
    yield
    patches.restore_all()


def by_hand() -> Any:
    """Return a config that a script fills itself."""
    config = v1.ConfigProto()
    entry = config.graph_options.rewrite_options.custom_optimizers.add()
    entry.name = "NpuOptimizer"
    entry.parameter_map["dump_step"].s = b"3"
    entry.parameter_map["precision_mode_v2"].s = b"origin"
    entry.parameter_map["use_off_line"].b = True
    return config


def options_of(session: Any) -> dict[str, Any]:
    """Return the NPU options that TensorFlow got for a session."""
    entry = find_entry(session._config)
    return {} if entry is None else read_options(entry)


@pytest.mark.parametrize("make", [v1.Session, v1.InteractiveSession])
def test_a_session_has_them(make: Any, given: None) -> None:
    with tf.Graph().as_default():
        session = make(config=by_hand())
    found = options_of(session)
    session.close()
    assert found == {**DUMP, "precision_mode": "force_fp16", "use_off_line": True}  # and not precision_mode_v2


def test_sessions_of_every_kind_have_them(given: None) -> None:
    with tf.Graph().as_default():
        v1.train.create_global_step()
        with v1.train.MonitoredTrainingSession(config=by_hand()) as session:
            assert options_of(session._tf_sess()).items() >= DUMP.items()
        with v1.Session(config=npu_shim.session_config(precision_mode="allow_mix_precision")) as session:
            assert options_of(session)["precision_mode"] == "force_fp16"


if tf_api.has_keras_sessions():

    def test_the_session_of_keras_has_them(given: None) -> None:
        with tf.Graph().as_default():
            v1.keras.backend.set_session(v1.Session(config=npu_shim.session_config()))
            found = options_of(v1.keras.backend.get_session())
            v1.keras.backend.set_session(None)
        assert found.items() >= {**DUMP, "precision_mode": "force_fp16"}.items()


def test_a_session_of_the_host_stays(given: None) -> None:
    with tf.Graph().as_default(), v1.Session(config=v1.ConfigProto(allow_soft_placement=True)) as session:
        assert not options_of(session) and session._config.allow_soft_placement
    with tf.Graph().as_default(), v1.Session() as session:
        assert not options_of(session)


def test_the_config_of_the_script_does_not_change(given: None) -> None:
    config = by_hand()
    with tf.Graph().as_default(), v1.Session(config=config):
        assert read_options(find_entry(config))["dump_step"] == "3"


def test_the_device_of_tensorflow_2_has_them() -> None:
    class Base:
        def as_dict(self) -> dict[str, str]:
            return {"precision_mode_v2": "origin", "dump_step": "3", "graph_run_mode": "1"}

    class Config(Base):
        pass

    class Nested(Base):
        pass

    options = {**DUMP, "precision_mode": "force_fp16", "deterministic": 1}
    noted: list[dict[str, Any]] = []
    Base.as_dict = given_options._wrap_as_dict(Base.as_dict, options, Config, noted.append)  # type: ignore[method-assign]
    texts = {name: str(int(value)) if isinstance(value, bool) else str(value) for name, value in options.items()}
    assert Config().as_dict() == {**texts, "graph_run_mode": "1"}
    assert noted == [{**texts, "graph_run_mode": "1"}]
    assert Nested().as_dict() == {"precision_mode_v2": "origin", "dump_step": "3", "graph_run_mode": "1"}


def test_a_value_that_is_not_allowed_is_an_error() -> None:
    assert host_device.is_npu()
    with pytest.raises(ValueError, match="precision_mode='half' is not allowed"):
        given_options.apply_to_new_sessions({"precision_mode": "half"})
