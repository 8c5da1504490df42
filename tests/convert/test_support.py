"""The support status of calls in the reports."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.report.api_table import api_table
from convert_tf2npu.report.support import STATUSES, TF1, TF2, status_of
from convert_tf2npu.tf_api.name_tables import SUPPORT

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


@pytest.mark.parametrize(
    "name, status",
    [
        ("tensorflow.reshape", "supported"),
        ("tensorflow.Session", "migrated"),
        ("tensorflow.contrib.layers.fully_connected", "deprecated"),
        ("tensorflow.train.replica_device_setter", "ignored"),
        ("tensorflow.executing_eagerly", "ignored"),
        ("tensorflow.enable_eager_execution", "unsupported"),
        ("tensorflow.train.batch", "unsupported"),
        ("tensorflow.is_nan", "limited"),
        ("tensorflow.nn.ctc_loss", "unclear"),
        ("tensorflow.random.experimental.Generator", "unexamined"),
        ("tensorflow.python.ops.summary_op_util.collect", "unlisted"),
        ("tensorflow.no_such_name", "unlisted"),
        ("tensorflow.data.Dataset.from_tensor_slices", "migrated"),  # as its class
        ("tensorflow.train.AdamOptimizer.__init__", "supported"),
        ("tensorflow.flags.DEFINE_string", "supported"),
        ("horovod.init", "migrated"),
        ("horovod.start_timeline", "migrated"),
        ("keras.layers.Dense", "unsupported"),
        ("tf_slim.conv2d", "unlisted"),
    ],
)
def test_a_name_has_a_status(name: str, status: str) -> None:
    assert status_of(name) == status


@pytest.mark.parametrize(
    "name, first, second",
    [
        ("tensorflow.abs", "supported", "supported"),  # examined as tf.abs, not as tf.compat.v1.abs
        ("tensorflow.placeholder", "supported", "supported"),  # of tf.compat.v1 alone
        ("tensorflow.Session", "migrated", "migrated"),
        ("tensorflow.estimator.Estimator", "migrated", "migrated"),
        ("tensorflow.contrib.layers.fully_connected", "deprecated", "unlisted"),
        ("horovod.init", "migrated", "migrated"),  # in no list
        # excluded by the second list, but base classes, host functions, and names that models train with on the NPU
        ("tensorflow.keras.layers.Layer", "supported", "supported"),
        ("tensorflow.py_function", "supported", "limited"),
        ("tensorflow.einsum", "supported", "unclear"),
        ("tensorflow.keras.layers.Conv3D", "supported", "unsupported"),
        ("tensorflow.SparseTensor", "supported", "unclear"),  # and supported as tf.sparse.SparseTensor
        # only the first list warns of these
        ("tensorflow.enable_eager_execution", "unsupported", "ignored"),
        ("tensorflow.random.experimental.Generator", "unexamined", "supported"),
        ("tensorflow.nn.ctc_loss", "unclear", "supported"),
        ("tensorflow.lookup.StaticHashTable", "limited", "limited"),
    ],
)
def test_tensorflow_2_has_a_list_of_its_own(name: str, first: str, second: str) -> None:
    assert (status_of(name, (), TF1), status_of(name, (), TF2)) == (first, second)


@pytest.mark.parametrize(
    "codes, status", [(("NPU109",), "migrated"), (("NPU109", "NPU238"), "limited"), ((), "migrated")]
)
def test_a_method_that_only_rules_know_has_their_status(codes: tuple[str, ...], status: str) -> None:
    assert status_of(".padded_batch", codes) == status


def test_reported_names_have_no_better_status() -> None:
    assert {status_of(name) for name in SUPPORT} <= set(list(STATUSES)[:4])


def uses(script: str, version: str = TF1) -> dict[str, Any]:
    result = Converter(list_calls=True).convert(("import tensorflow as tf\n" + script).encode())
    return {use.short_name: use for use in api_table([result], version)}


def test_calls_of_eager_code() -> None:
    step = "@tf.function\ndef step(x):\n    return model(x)\n"
    script = "s = tf.distribute.MirroredStrategy()\nd = tf.data.Dataset.range(8)\no = tf.keras.optimizers.AdamW(0.1)\n"
    script += "h = tf.keras.layers.RandomHue(0.1)\n"
    found = uses(step + script + "tf.config.run_functions_eagerly(True)\nfor x in d:\n    step(x)\n", TF2)
    assert found["tf.distribute.MirroredStrategy"].status == "limited"  # NPU250: run the tool with -d tf_strategy
    assert found["tf.data.Dataset.range"].status == "supported"  # as it is
    assert found["tf.keras.optimizers.AdamW"].status == "migrated"  # TensorFlow 2.6 lacks it, and npu_shim has it
    assert found["tf.keras.layers.RandomHue"].status == "unsupported"


def test_the_rules_come_before_the_support_list() -> None:
    found = uses("tf.where(x)\ntf.contrib.tpu.TPUEstimator(use_tpu=True, model_fn=f, config=c)\ntf.abs(1)\n")
    assert found["tf.where"].status == "limited"  # supported, but not with one argument
    assert found["tf.contrib.tpu.TPUEstimator"].status == "migrated"
    assert found["tf.abs"].status == "supported"


def test_the_table_begins_with_what_needs_the_user() -> None:
    found = uses("tf.abs(1)\ntf.abs(2)\ntf.Session()\ntf.where(x)\ntf.no_such_name()\n")
    assert list(found) == ["tf.where", "tf.no_such_name", "tf.Session", "tf.abs"]
    assert (found["tf.abs"].calls.total, found["tf.abs"].files) == (2, 1)
    assert found["tf.where"].codes == ("NPU230",)


def test_the_list_is_made_from_the_lists_of_the_vendor(tmp_path: pathlib.Path) -> None:
    rows = {"tf.a.x": "supported_no_change", "tf.a.y(v)": "under_analysis", "tf.compat.v1.a.z": "compatible"}
    of_2 = {
        "tf.a.x": "supported_no_change",
        "tf.compat.v1.a.x": "under_analysis",
        "tf.a.y": "unsupported_avoid",
        "tf.compat.v1.a.y": "supported_no_change",
        "tf.compat.v1.a.z": "deprecated",
        "tf": "supported_no_change",
    }
    for name, version, listed in (("1", "1.15", rows), ("2", "2.6", of_2)):
        (tmp_path / name).write_text(
            json.dumps(
                {"meta": {"tensorflow": version}, "apis": {key: {"status": status} for key, status in listed.items()}}
            )
        )
    made = subprocess.run(
        [sys.executable, str(TOOLS / "make_support_list.py"), str(tmp_path / "1"), str(tmp_path / "2")],
        stdout=subprocess.PIPE,
        check=True,
    )
    assert json.loads(made.stdout.decode()) == {
        "1.15": {"supported": {"tensorflow.a": "x"}, "unexamined": {"tensorflow.a": "y"}},
        "2.6": {"deprecated": {"tensorflow.a": "z"}, "supported": {"tensorflow.a": "x y"}},
    }
