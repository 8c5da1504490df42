"""An NPURunConfig saves checkpoints as the RunConfig did."""

from __future__ import annotations

import pytest
from convert_tf2npu.engine.converter import Converter

HEAD = "import tensorflow as tf\n"


@pytest.mark.parametrize(
    "before,after",
    [
        ("save_checkpoints_steps=500 if first else None", "save_checkpoints_steps=500 if first else 0"),
        ("save_checkpoints_steps=None if last else 500", "save_checkpoints_steps=0 if last else 500"),
        (
            "save_checkpoints_steps=None, save_checkpoints_secs=None",
            "save_checkpoints_steps=0, save_checkpoints_secs=None",
        ),
        ("save_checkpoints_secs=None", "save_checkpoints_secs=None, save_checkpoints_steps=0"),
        ("d, 1, 2, None", "model_dir=d, tf_random_seed=1, save_summary_steps=2, save_checkpoints_steps=0"),
        (
            "save_checkpoints_steps=None, save_checkpoints_secs=60",
            "save_checkpoints_steps=None, save_checkpoints_secs=60",
        ),
        ("save_checkpoints_steps=500", "save_checkpoints_steps=500"),
        ("", ""),
    ],
)
def test_none_disables_checkpoints(before: str, after: str) -> None:
    converter = Converter()
    new = converter.convert((HEAD + f"c = tf.estimator.RunConfig({before})\n").encode()).new
    assert new is not None and f"c = NPURunConfig({after})\n" in new.decode()
    assert converter.convert(new).new is None


def test_a_function_of_the_script_prepares_a_run_configuration() -> None:
    prepare = (
        "def npu_run_config_init(config=None):\n    if config is None:\n        config = tf.estimator.RunConfig()\n"
        "    config.__dict__['_session_config'] = options()\n    return config\n"
    )
    made = "config = tf.estimator.RunConfig(save_summary_steps=1)\n"
    made += "e = tf.estimator.Estimator(f, config=npu_run_config_init(config))\n"
    converter = Converter()
    new = converter.convert((HEAD + prepare + made).encode()).new
    assert new is not None and new.count(b"NPURunConfig(") == 2 and b"e = NPUEstimator(" in new
    assert converter.convert(new).new is None
