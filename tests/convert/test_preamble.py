"""An added import and an added session come after the preamble of a script."""

from __future__ import annotations

import pathlib
import textwrap

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.main import main

STAR = "from npu_shim.npu_init import *"
OPEN = "npu_keras_sess = set_keras_session_npu_config()"
IMPORTS = """\
import argparse, logging, os, random, sys, warnings
import numpy as np
import tensorflow as tf
from absl import logging as absl_logging
"""
SETTINGS = [
    "os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'",
    "os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')",
    "os.environ.update({'TF_CPP_MIN_LOG_LEVEL': '3'}, JOB=str(1))",
    "os.environ.update(dict(A=os.getcwd()))",
    "os.environ.pop('TF_CONFIG', None)",
    "del os.environ['TF_CONFIG']",
    "if 'A' not in os.environ:\n    os.environ['A'] = '1'\nelse:\n    pass",
    "for name in ('A', 'B'):\n    os.environ.setdefault(name, '1')",
    "try:\n    os.environ.pop('A')\nexcept KeyError:\n    print('no A')",
    "warnings.filterwarnings('ignore', category=FutureWarning)",
    "warnings.simplefilter('ignore')",
    "sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))",
    "sys.path += ['..']",
    "sys.path.append('..')",
    "logging.basicConfig(level=logging.INFO)",
    "logging.getLogger('tensorflow').setLevel(logging.ERROR)",
    "log = logging.getLogger(__name__)\nlog.setLevel(logging.INFO)\nlog.addHandler(logging.StreamHandler(sys.stdout))",
    "absl_logging.set_verbosity(absl_logging.INFO)",
    "tf.logging.set_verbosity(tf.logging.INFO)",
    "tf.compat.v1.logging.set_verbosity('INFO')",
    "tf.get_logger().setLevel('ERROR')",
    "tf.disable_v2_behavior()",
    "tf.compat.v1.disable_v2_behavior()",
    "tf.compat.v1.disable_eager_execution()",
    "tf.compat.v1.enable_resource_variables()",
    "tf.enable_control_flow_v2()",
    "tf.config.set_soft_device_placement(True)",
    "tf.set_random_seed(1)",
    "tf.compat.v1.set_random_seed(1)",
    "tf.random.set_seed(1)",
    "tf.random.set_random_seed(1)",
    "tf.keras.utils.set_random_seed(1)",
    "tf.keras.backend.set_floatx('float32')",
    "np.random.seed(1)",
    "random.seed(1)",
    "seed = int(os.getenv('SEED', '1'))\nrandom.seed(seed)\nnp.random.seed(seed)",
]


def lines_of(text: str, code: str) -> list[str]:
    result = Converter(Settings(select=(code,))).convert(text.encode())
    assert result.new is not None
    return result.new.decode().splitlines()


@pytest.mark.parametrize("setting", SETTINGS)
def test_an_import_follows_the_settings_behind_the_import_of_tensorflow(setting: str) -> None:
    lines = lines_of(IMPORTS + "\n" + setting + "\n\nsess = tf.Session()\n", "NPU101")
    assert lines[lines.index(STAR) - 1] == setting.splitlines()[-1]


@pytest.mark.parametrize("setting", [s for s in SETTINGS if "tf." not in s])
def test_an_import_follows_the_settings_of_a_script_that_has_tensorflow_from_another_file(
    setting: str, tmp_path: pathlib.Path
) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "common.py").write_text("import tensorflow as tf\n")
    text = IMPORTS.replace("import tensorflow as tf\n", "") + setting + "\nfrom common import tf\nsess = tf.Session()\n"
    (source / "train.py").write_text(text)
    assert main(["-i", str(source), "-o", str(tmp_path / "out"), "--select", "NPU101"]) in (0, 1)
    lines = (tmp_path / "out" / "train.py").read_text().splitlines()
    added = next(line for line in lines if "npu_shim" in line)
    assert lines[lines.index(added) - 1] == "from common import tf"


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("between", ["", "args = argparse.ArgumentParser().parse_args()", "flag = parse()"])
def test_a_session_follows_the_settings_of_a_module_and_of_a_function(between: str, setting: str) -> None:
    train = "model = tf.keras.Sequential()\nmodel.compile('adam', 'mse')\nmodel.fit(x, y)\n"
    parse = (
        "def parse():\n    parser = argparse.ArgumentParser()\n    parser.add_argument('--seed', type=int)\n"
        "    return parser.parse_args()\n\n"
    )
    off = "tf.disable_v2_behavior()\n"
    for text in (
        IMPORTS + parse + off + between + "\n" + setting + "\n" + train,
        IMPORTS
        + parse
        + "def main():\n"
        + textwrap.indent(off + between + "\n" + setting + "\n" + train, "    ")
        + "main()\n",
    ):
        lines = [line.strip() for line in lines_of(text, "NPU105")]
        assert lines[lines.index(OPEN) - 1] == setting.splitlines()[-1].strip()


def test_a_function_that_splits_a_version_belongs_to_the_preamble() -> None:
    text = IMPORTS + "def parts(v):\n    return tuple(map(int, v.split('.')))\n\n"
    text += "if parts(tf.__version__) > (1, 14):\n    tf.compat.v1.disable_eager_execution()\nmodel = tf.keras.Sequential()\n"
    lines = lines_of(text + "model.fit(x, y)\n", "NPU105")
    assert (
        lines.index("npu_keras_sess = set_keras_session_npu_config()")
        == lines.index("model = tf.keras.Sequential()") - 1
    )


@pytest.mark.parametrize(
    "statement", ["x = tf.constant(1)", "model = build()", "for _ in range(2):\n    tf.constant(1)", "tf.add(1, 2)"]
)
def test_a_statement_that_builds_something_ends_the_preamble(statement: str) -> None:
    text = (
        IMPORTS + "def build():\n    return tf.constant(1)\n\n" + statement + "\nnp.random.seed(1)\ns = tf.Session()\n"
    )
    lines = lines_of(text, "NPU101")
    assert lines.index(STAR) < lines.index(statement.splitlines()[0])


def test_flags_do_not_push_the_import_down() -> None:
    text = (
        IMPORTS + "tf.flags.DEFINE_string('a', '', '')\ntf.logging.set_verbosity(tf.logging.INFO)\ns = tf.Session()\n"
    )
    lines = lines_of(text, "NPU101")
    assert lines.index(STAR) < lines.index("tf.flags.DEFINE_string('a', '', '')")


def test_a_variable_that_holds_itself() -> None:
    text = "import tensorflow as tf\ndata = data.apply(f)\nlogger = logger.child('a')\nlogger.info('b')\n" + (
        "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.fit(data)\n"
    )
    result = Converter().convert(text.encode())
    assert not result.unreadable and b"npu.open()" in (result.new or b"")
