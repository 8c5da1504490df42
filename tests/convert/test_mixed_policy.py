"""Policies of mixed precision that are converted, and those that are reported."""

from __future__ import annotations

import pathlib

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.project.project import Project

START = "import tensorflow as tf\nfrom tensorflow import keras\n"
POLICY = "keras.mixed_precision.set_global_policy('mixed_float16')\n"
MODEL = "model = keras.Sequential([keras.layers.Dense(1)])\n"
FIT = "model.fit(x, y)\n"
SCALED = "npu.train.optimizer.NpuLossScaleOptimizer(%s)"


def converted(text: str, distributed: str = "") -> str:
    result = Converter(Settings(select=("NPU116", "NPU121"), distributed=distributed)).convert(text.encode())
    codes = [each.kind for each in result.diagnostics if each.code == "NPU116"]
    assert len(codes) == 1
    return result.new.decode() if result.new and codes == ["change"] else ""


@pytest.mark.parametrize(
    ("optimizer", "written"),
    [
        ("keras.optimizers.Adam(1e-3)", SCALED % "keras.optimizers.Adam(1e-3)"),
        ("'sgd'", SCALED % "tf.keras.optimizers.SGD()"),
        ("opt", SCALED % "opt"),
    ],
)
def test_the_optimizers_of_compile_scale_the_loss(optimizer: str, written: str) -> None:
    text = START + POLICY + MODEL + f"opt = keras.optimizers.Adam()\nmodel.compile({optimizer}, 'mse')\n" + FIT
    new = converted(text)
    assert f"model.compile({written}, 'mse')" in new
    assert "npu.global_options().precision_mode = 'allow_mix_precision'\n" in new and "set_global_policy" not in new


def test_a_loop_that_does_not_scale_its_loss_needs_only_the_option() -> None:
    text = START + POLICY + MODEL + "with tf.GradientTape() as tape:\n    loss = model(x)\n"
    assert "precision_mode" in converted(text) and "LossScale" not in converted(text)


@pytest.mark.parametrize(
    "text",
    [
        POLICY + MODEL + "model.compile(made(), 'mse')\n" + FIT,
        POLICY + MODEL + "model.compile(loss='mse')\n" + FIT,
        POLICY + MODEL + "model.compile(**settings)\n" + FIT,
        POLICY + MODEL + "model.compile('mine', 'mse')\n" + FIT,
        POLICY.replace("float16", "bfloat16") + MODEL + "model.compile('sgd', 'mse')\n" + FIT,
        MODEL + "model.compile('sgd', 'mse')\n" + POLICY + FIT,
        "policy = keras.mixed_precision.Policy('mixed_float16')\nkeras.mixed_precision.set_global_policy(policy)\n"
        "model = keras.Sequential([keras.layers.Dense(1, dtype=policy)])\nmodel.compile('sgd', 'mse')\n" + FIT,
    ],
    ids=["unknown", "default", "hidden", "no optimizer of Keras", "bfloat16", "behind the model", "given to a layer"],
)
def test_other_policies_are_reported(text: str) -> None:
    assert converted(START + text) == ""


def test_a_policy_of_ranks_is_reported() -> None:
    assert converted(START + POLICY + MODEL + "model.compile('sgd', 'mse')\n" + FIT, "tf_strategy") == ""


def test_a_policy_that_another_file_needs_is_reported(tmp_path: pathlib.Path) -> None:
    script, module = tmp_path / "train.py", tmp_path / "net.py"
    script.write_text(START + "import net\n" + POLICY + MODEL + "model.compile('sgd', 'mse')\n" + FIT)
    for text, kind in (("units = 1\n", "change"), ("def made(m):\n    m.compile('adam', 'mse')\n", "finding")):
        module.write_text(text)
        converter = Converter(project=Project([str(script), str(module)]))
        found = converter.convert(script.read_bytes(), str(script)).diagnostics
        assert [each.kind for each in found if each.code == "NPU116"] == [kind]
