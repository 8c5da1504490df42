"""Names of tf.contrib: replaced by those of tf.compat.v1 with their arguments, or reported."""

from __future__ import annotations

import pathlib

import pytest
from convert_tf2npu.engine.converter import FINDING, Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.main import main
from convert_tf2npu.rules.compat_v1.contrib.advice import advice_for_contrib_name
from convert_tf2npu.rules.compat_v1.contrib.replacements import REPLACEMENTS
from convert_tf2npu.tf_api.v1_fate import ONLY_IN_V1, OTHERWISE, SAME, fate_of_v1_name

MOVING = Converter(Settings(select=("NPU100", "NPU119", "NPU260"), compat_v1=True))
HEAD, LIFTED = "import tensorflow as tf\n", "import tensorflow.compat.v1 as tf\n"


def moved(text: str) -> str:
    result = MOVING.convert(text.encode())
    assert not result.unreadable, result.diagnostics
    new = text if result.new is None else result.new.decode()
    assert MOVING.convert(new.encode()).new is None
    return new


def reported(text: str) -> list[str]:
    return [d.message for d in MOVING.convert(text.encode()).diagnostics if d.kind == FINDING]


CALLS = {
    "tf.contrib.rnn.LSTMCell(8, forget_bias=0.0)": "tf.nn.rnn_cell.LSTMCell(8, forget_bias=0.0)",
    "tf.contrib.rnn.static_rnn(cell, x)": "tf.nn.static_rnn(cell, x)",
    "tf.contrib.layers.xavier_initializer()": "tf.glorot_uniform_initializer()",
    "tf.contrib.layers.xavier_initializer(seed=1)": "tf.glorot_uniform_initializer(seed=1)",
    "tf.contrib.layers.xavier_initializer(uniform=True, seed=1)": "tf.glorot_uniform_initializer(seed=1)",
    "tf.contrib.layers.xavier_initializer(True, 1)": "tf.glorot_uniform_initializer(1)",
    "tf.contrib.layers.xavier_initializer(True)": "tf.glorot_uniform_initializer()",
    "tf.contrib.layers.xavier_initializer_conv2d(seed=s)": "tf.glorot_uniform_initializer(seed=s)",
    'tf.contrib.layers.variance_scaling_initializer(1.0, "FAN_AVG", True)': "tf.variance_scaling_initializer(scale=1.0, mode='fan_avg', distribution='uniform')",
    "tf.contrib.layers.variance_scaling_initializer(uniform=True, seed=7)": "tf.variance_scaling_initializer(scale=2.0, mode='fan_in', distribution='uniform', seed=7)",
    "tf.contrib.layers.l2_regularizer(1e-4)": "tf.keras.regularizers.l2(0.5 * 1e-4)",
    "tf.contrib.layers.l2_regularizer(a + b)": "tf.keras.regularizers.l2(0.5 * (a + b))",
    'tf.contrib.layers.l2_regularizer(scale=FLAGS.decay, scope="l2")': "tf.keras.regularizers.l2(0.5 * FLAGS.decay)",
    "tf.contrib.layers.l1_regularizer(a + b)": "tf.keras.regularizers.l1(a + b)",
    "tf.contrib.layers.l1_regularizer(scale=a)": "tf.keras.regularizers.l1(a)",
    "tf.contrib.layers.flatten(x)": "tf.layers.flatten(x)",
    'tf.contrib.layers.flatten(x, scope="f")': 'tf.layers.flatten(x, name="f")',
    'tf.contrib.layers.flatten(x, outputs_collections=None, scope="f")': 'tf.layers.flatten(x, name="f")',
    'tf.contrib.metrics.streaming_auc(p, l, curve="PR")': 'tf.metrics.auc(predictions=p, labels=l, curve="PR")',
    "tf.contrib.metrics.streaming_mean_iou((p), l, 3)": "tf.metrics.mean_iou(predictions=(p), labels=l, num_classes=3)",
    "tf.contrib.metrics.streaming_accuracy(labels=l, predictions=p)": "tf.metrics.accuracy(labels=l, predictions=p)",
    "tf.contrib.losses.softmax_cross_entropy(logits, labels, 0.5)": "tf.losses.softmax_cross_entropy(logits=logits, onehot_labels=labels, weights=0.5)",
    "tf.contrib.framework.list_variables(path)": "tf.train.list_variables(path)",
    'tf.contrib.framework.load_variable(checkpoint_dir=d, name="v")': 'tf.train.load_variable(ckpt_dir_or_file=d, name="v")',
    "tf.contrib.framework.nest.flatten(x)": "tf.nest.flatten(x)",
    "tf.contrib.framework.get_or_create_global_step()": "tf.train.get_or_create_global_step()",
    "d.prefetch(tf.contrib.data.AUTOTUNE)": "d.prefetch(tf.data.experimental.AUTOTUNE)",
    "tf.contrib.data.shuffle_and_repeat(10)": "tf.data.experimental.shuffle_and_repeat(10)",
    "tf.contrib.data.bucket_by_sequence_length(f, [1], [2, 2])": "tf.data.experimental.bucket_by_sequence_length(f, [1], [2, 2])",
    "tf.contrib.tpu.InputPipelineConfig.PER_HOST_V2": "tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2",
    'tf.contrib.cluster_resolver.TPUClusterResolver("a")': 'tf.distribute.cluster_resolver.TPUClusterResolver("a")',
    "tf.contrib.distribute.MirroredStrategy()": "tf.distribute.MirroredStrategy()",
    'tf.contrib.distribute.OneDeviceStrategy("/cpu:0")': 'tf.distribute.OneDeviceStrategy("/cpu:0")',
    "tf.contrib.distributions.Normal(0., 1.)": "tf.distributions.Normal(0., 1.)",
    "tf.contrib.eager.enable_eager_execution()": "tf.enable_eager_execution()",
    "tf.contrib.util.make_tensor_proto(x)": "tf.make_tensor_proto(x)",
    "tf.contrib.keras.layers.Dense(2)": "tf.keras.layers.Dense(2)",
    "tf.contrib.training.checkpoints_iterator(d)": "tf.train.checkpoints_iterator(d)",
}


@pytest.mark.parametrize("before,after", list(CALLS.items()), ids=list(CALLS))
def test_a_call_moves_with_its_arguments(before: str, after: str) -> None:
    assert moved(HEAD + f"def f():\n    return {before}\n") == LIFTED + f"def f():\n    return {after}\n"


@pytest.mark.parametrize(
    "call,words",
    [
        ("tf.contrib.layers.xavier_initializer(uniform=False)", "tf.glorot_normal_initializer"),
        ("tf.contrib.layers.xavier_initializer(*a)", "tf.glorot"),
        ("tf.contrib.layers.variance_scaling_initializer()", "tf.variance_scaling_initializer(scale=2.0"),
        ('tf.contrib.layers.flatten(x, "outputs")', "tf.layers.flatten"),
        ("tf.contrib.layers.fully_connected(x, 2)", "tf_slim.fully_connected"),
        ('tf.contrib.layers.real_valued_column("a")', "tf.feature_column"),
        ("tf.contrib.framework.arg_scope([f], a=1)", "tf_slim.arg_scope"),
        ("tf.contrib.metrics.f1_score(l, p)", "tf_slim.metrics.f1_score"),
        ("tf.contrib.training.HParams(a=1)", "types.SimpleNamespace"),
        ("tf.contrib.crf.crf_log_likelihood(a, b, c)", "tfa.text"),
        ("tf.contrib.distribute.MirroredStrategy(num_gpus=2)", "tf.distribute.MirroredStrategy"),
        ("tf.contrib.staging.StagingArea([])", "from tensorflow.python.ops.data_flow_ops import StagingArea"),
        ("tf.contrib.tpu.python.tpu.tpu_function.get_tpu_context()", "from tensorflow.python.tpu.tpu_function import"),
        ("tf.contrib.nothing.such(1)", "tensorflow/contrib/nothing"),
        ("tf.keras.utils.multi_gpu_model(m, 2)", "-d horovod"),
        ("tf.python.client.device_lib.list_local_devices()", "from tensorflow.python.client.device_lib"),
        ("tf.keras.layers.LSTM(8, *a)", ""),
        ("tf.config.experimental.set_virtual_device_configuration(a, virtual_devices=b)", "virtual_devices"),
    ],
)
def test_names_without_a_replacement_are_reported_with_advice(call: str, words: str) -> None:
    text = HEAD + f"def f():\n    return {call}, tf.to_float(1)\n"
    assert moved(text) == LIFTED + text[len(HEAD) :]
    assert [message for message in reported(text) if words in message] or not words and not reported(text)


IMPORTS = {
    "from tensorflow.contrib import rnn\ndef f():\n    return rnn.GRUCell(2)\n": "from tensorflow.compat.v1.nn import rnn_cell as rnn\ndef f():\n    return rnn.GRUCell(2)\n",
    "import tensorflow.contrib.rnn as r\ndef f():\n    return r.GRUCell(2)\n": "from tensorflow.compat.v1.nn import rnn_cell as r\ndef f():\n    return r.GRUCell(2)\n",
    "from tensorflow.contrib.rnn import LSTMCell, static_rnn as run\n": "from tensorflow.compat.v1.nn import static_rnn as run\nfrom tensorflow.compat.v1.nn.rnn_cell import LSTMCell\n",
    "from tensorflow.contrib.rnn import GRUCell, GRUBlockCell\n": "from tensorflow.contrib.rnn import GRUBlockCell\nfrom tensorflow.compat.v1.nn.rnn_cell import GRUCell\n",
    "from tensorflow.contrib.layers import xavier_initializer\ndef f():\n    return xavier_initializer(True, 1)\n": "from tensorflow.compat.v1 import glorot_uniform_initializer as xavier_initializer\ndef f():\n"
    "    return xavier_initializer(1)\n",
    "from tensorflow.contrib.layers import flatten\nimport tensorflow as tf\ndef f(x):\n    return flatten(x)\n": "import tensorflow.compat.v1 as tf\ndef f(x):\n    return tf.layers.flatten(x)\n",
    "from tensorflow.contrib import data as d\nimport tensorflow as tf\ndef f(x):\n    return d.unbatch(), d.Counter()\n": "from tensorflow.compat.v1.data import experimental as d\nimport tensorflow as tf\ndef f(x):\n"
    "    return d.unbatch(), d.Counter()\n",
    "from tensorflow.contrib import rnn, layers\nimport tensorflow as tf\ndef f(x):\n"
    "    return rnn.static_rnn(rnn.GRUCell(2), x), layers.conv2d(x)\n": "from tensorflow.contrib import layers\nimport tensorflow.compat.v1 as tf\ndef f(x):\n"
    "    return tf.nn.static_rnn(tf.nn.rnn_cell.GRUCell(2), x), layers.conv2d(x)\n",
    "from tensorflow.contrib.framework.python.framework import checkpoint_utils\ndef f(p):\n"
    "    return checkpoint_utils.list_variables(p)\n": "import tensorflow.compat.v1 as tf\ndef f(p):\n    return tf.train.list_variables(p)\n",
    "import tensorflow as tf\nrnn = tf.contrib.rnn\ndef f():\n    return rnn.GRUCell(2)\n": "import tensorflow.compat.v1 as tf\nrnn = tf.nn.rnn_cell\ndef f():\n    return rnn.GRUCell(2)\n",
    "import tensorflow as tf\nrnn = tf.contrib.rnn\ndef f(x):\n    return rnn.static_rnn(rnn.GRUCell(2), x)\n": "import tensorflow.compat.v1 as tf\ndef f(x):\n    return tf.nn.static_rnn(tf.nn.rnn_cell.GRUCell(2), x)\n",
    "import tensorflow as tf\nCell = tf.contrib.rnn.GRUCell\ndef f():\n    return Cell(2)\n": "import tensorflow.compat.v1 as tf\nCell = tf.nn.rnn_cell.GRUCell\ndef f():\n    return Cell(2)\n",
    "import tensorflow as tf\ndef f():\n    from tensorflow.contrib import rnn\n    return rnn.LSTMStateTuple\n": "import tensorflow as tf\ndef f():\n    from tensorflow.compat.v1.nn import rnn_cell as rnn\n"
    "    return rnn.LSTMStateTuple\n",
    "from tensorflow.contrib.keras import layers\ndef f():\n    return layers.Dense(2)\n": "from tensorflow.compat.v1.keras import layers\ndef f():\n    return layers.Dense(2)\n",
}


@pytest.mark.parametrize("before,after", list(IMPORTS.items()), ids=[text.split("\n")[0] for text in IMPORTS])
def test_an_import_moves_with_what_is_used_of_it(before: str, after: str) -> None:
    assert moved(before) == after


@pytest.mark.parametrize(
    "text,count",
    [
        ("from tensorflow.contrib import slim\ndef f(x):\n    return slim.conv2d(x), slim.fully_connected(x)\n", 1),
        ("import tensorflow.contrib.slim\ndef f(x):\n    return 1\n", 1),
        ("from tensorflow.contrib.layers import *\n", 1),
        ("import tensorflow.contrib.resampler as unused\n", 1),
        ("from tensorflow.contrib.rnn import (\n    GRUCell,  # small\n)\n", 1),
        ("from tensorflow.contrib import rnn  # npu: ignore\ndef f():\n    return rnn.GRUCell(2)\n", 0),
        ("from tensorflow.contrib import rnn  # npu: ignore[NPU119]\ndef f():\n    return rnn.GRUCell(2)\n", 1),
        ('from tensorflow.examples.tutorials.mnist import input_data\nm = input_data.read_data_sets("d")\n', 1),
        ("from tensorflow.python.framework.ops import Tensor\n", 1),
        ("from tensorflow.python.framework import ops\ndef f(x):\n    return isinstance(x, ops.Tensor)\n", 1),
        ("from tensorflow.python.framework import ops\ndef f(x):\n    return ops.convert_to_tensor(x)\n", 0),
        ("try:\n    from tensorflow.contrib import slim\nexcept ImportError:\n    slim = None\n", 0),
    ],
    ids=lambda value: str(value)[:60],
)
def test_an_import_that_is_not_converted_is_reported_once(text: str, count: int) -> None:
    assert moved(text) == text
    assert len(reported(text)) == count


def test_a_module_passed_to_other_code_is_reported() -> None:
    text = "from tensorflow.contrib import rnn\nimport tensorflow as tf\ndef f():\n    return g(rnn), rnn.GRUCell(2)\n"
    assert "from tensorflow.contrib import rnn\n" in moved(text) and "tf.nn.rnn_cell.GRUCell(2)" in moved(text)
    assert [message for message in reported(text) if "tf.contrib.rnn" in message]


def test_names_that_other_files_import_stay_imported(tmp_path: pathlib.Path) -> None:
    files = {
        "cells.py": "from tensorflow.contrib import rnn\n",
        "net.py": "from cells import rnn\ndef f():\n    return rnn.GRUCell(2)\n",
    }
    for name, text in files.items():
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_text(text)
    assert main(["-i", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--compat-v1", "--select", "NPU1"]) == 0
    assert (tmp_path / "out" / "cells.py").read_text() == files["cells.py"]


def test_a_call_that_another_rule_replaces_is_not_moved() -> None:
    text = HEAD + (
        "loss_scale = tf.contrib.mixed_precision.FixedLossScaleManager(128)\n"
        "opt = tf.contrib.mixed_precision.LossScaleOptimizer(tf.train.AdamOptimizer(), loss_scale)\n"
    )
    result = Converter(Settings(compat_v1=True)).convert(text.encode())
    assert result.new is not None and b"contrib" not in result.new
    assert not [d for d in result.diagnostics if d.code == "NPU260"]


def test_converted_names_are_not_reported() -> None:
    assert not reported(
        next(text for text in IMPORTS if "static_rnn(rnn.GRUCell(2), x)" in text and "conv2d" not in text)
    )


def test_without_the_option_tf_contrib_is_unchanged() -> None:
    text = b"from tensorflow.contrib import rnn\ndef f():\n    return rnn.GRUCell(2)\n"
    assert Converter().convert(text).new is None and not Converter().convert(text).diagnostics


def test_replacements_are_names_of_compat_v1_and_advice_is_an_imperative() -> None:
    for name, replacement in REPLACEMENTS.items():
        assert fate_of_v1_name("tensorflow." + replacement.name) in (SAME, ONLY_IN_V1, OTHERWISE), name
        assert advice_for_contrib_name(name).startswith("Use tf.")
        assert set(dict(replacement.renamed)) <= set(replacement.before) and set(
            dict(replacement.renamed).values()
        ) <= set(replacement.after)
    known: dict[str, str] = {
        name: advice_for_contrib_name(name) for name in ("", "slim", "rnn", "layers", "seq2seq.Helper", "opt.X")
    }
    assert all(known.values()) and not [text for text in known.values() if "%" in text]
