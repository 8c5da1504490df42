"""A second run decides as the first one did, and odd comments, line ends and brackets stop no rule.

The evidence that a file shows survives the conversion of the file.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from convert_tf2npu.engine.converter import FINDING, Converter
from convert_tf2npu.engine.settings import Settings

HEAD, LIFTED = "import tensorflow as tf\n", "import tensorflow.compat.v1 as tf\n"
STAR = "from npu_shim.npu_init import *\n"
V1 = dict(compat_v1=True)


class Case(NamedTuple):
    """A script and its converted form; ``after`` is empty if it does not change."""

    settings: dict[str, object]
    before: str
    after: str = ""


CASES = {
    "a dotted name of tf.contrib in brackets": Case(
        V1,
        HEAD + "def f():\n    return (((tf).contrib). rnn \\\n  .GRUCell)(2)\n",
        LIFTED + "def f():\n    return (((tf)).nn.rnn_cell.GRUCell)(2)\n",
    ),
    "a name of tf.contrib right behind a keyword": Case(
        V1,
        HEAD + "from tensorflow.contrib import rnn\ndef f(x):\n    return(rnn).static_rnn(rnn.GRUCell(2), x)\n",
        LIFTED + "def f(x):\n    return tf.nn.static_rnn(tf.nn.rnn_cell.GRUCell(2), x)\n",
    ),
    "compat.v1 behind a bracket": Case(
        V1,
        HEAD + "x = tf.placeholder(tf.float32)\ny = (tf  ).compat.v1.log(x)\n",
        LIFTED + "tf.disable_v2_behavior()\nx = tf.placeholder(tf.float32)\ny = (tf).log(x)\n",
    ),
    "an import that goes, before a semicolon": Case(
        V1,
        HEAD + "from tensorflow.contrib import rnn ; \ndef f(x):\n    return rnn.static_rnn(rnn.GRUCell(2), "
        "tf.nn.dropout(x, rate=.1))\n",
        LIFTED + "from npu_shim.npu_init import npu_ops\ndef f(x):\n    return tf.nn.static_rnn("
        "tf.nn.rnn_cell.GRUCell(2), npu_ops.dropout(x, keep_prob=0.9))\n",
    ),
    "an import that goes, before another statement": Case(
        V1,
        HEAD + "from tensorflow.contrib import rnn; n = 2\ndef f(x):\n    return rnn.static_rnn(rnn.GRUCell(n), "
        "tf.nn.dropout(x, rate=.1))\n",
        LIFTED + "from npu_shim.npu_init import npu_ops\nn = 2\ndef f(x):\n    return tf.nn.static_rnn("
        "tf.nn.rnn_cell.GRUCell(n), npu_ops.dropout(x, keep_prob=0.9))\n",
    ),
    "a regularizer with its scale in brackets": Case(
        V1,
        HEAD + "def f(a, b):\n    return tf.contrib.layers.l2_regularizer(scale=(a + b)), "
        "tf.contrib.layers.l2_regularizer(scale = a + b, scope=None)\n",
        LIFTED + "def f(a, b):\n    return tf.keras.regularizers.l2(0.5 * (a + b)), "
        "tf.keras.regularizers.l2(0.5 * (a + b))\n",
    ),
    "an initializer with a bracket around what goes": Case(
        V1,
        HEAD + "def f():\n    return tf.contrib.layers.xavier_initializer((True), 1)\n",
        LIFTED + "def f():\n    return tf.glorot_uniform_initializer(1)\n",
    ),
    "what stays for its comment, with an import from its home": Case(
        V1,
        HEAD + "from tensorflow.contrib import rnn\n\ndef f(x):\n    return rnn.static_rnn(rnn  # small\n"
        "                          .GRUCell(2), x)\n",
        LIFTED + "from tensorflow.compat.v1.nn import rnn_cell as rnn\n\ndef f(x):\n    return tf.nn.static_rnn("
        "rnn  # small\n                          .GRUCell(2), x)\n",
    ),
    "buckets that move and have one size": Case(
        V1,
        HEAD + "def f(d):\n    return d.repeat().apply(tf.contrib.data.bucket_by_sequence_length(l, b, s))\n",
        LIFTED + "def f(d):\n    return d.repeat().apply(tf.data.experimental.bucket_by_sequence_length(l, b, s, "
        "drop_remainder=True))\n",
    ),
    "buckets that do not move": Case(
        dict(compat_v1=True, ignore=("NPU119",)),
        HEAD + "def f(d):\n    return d.repeat().apply(tf.contrib.data.bucket_by_sequence_length(l, b, s))\n",
        LIFTED + "def f(d):\n    return d.repeat().apply(tf.contrib.data.bucket_by_sequence_length(l, b, s))\n",
    ),
    "a file whose one name of TensorFlow 2 is replaced": Case(
        V1,
        HEAD + 'h = tf.nn.gelu(h, approximate=True)\nwith tf.device("/cpu:0"):\n    y = f(x)\n',
        HEAD + STAR + 'h = npu_unary_ops.gelu(h)\nwith tf.device("/cpu:0"):\n    y = f(x)\n',
    ),
    "a file whose one name of TensorFlow 2 is replaced, with names of TensorFlow 1": Case(
        V1,
        HEAD + "h = tf.nn.gelu(h, approximate=True)\ny = tf.reduce_mean(tf.log(x + 1e-8))\n",
        HEAD + STAR + "tf.compat.v1.disable_v2_behavior()\nh = npu_unary_ops.gelu(h)\n"
        "y = tf.reduce_mean(tf.compat.v1.log(x + 1e-8))\n",
    ),
    "a file of TensorFlow 2 that uses compat.v1": Case(
        V1, HEAD + "def f(x):\n    return tf.where(tf.compat.v1.is_nan(x), 0.0, x)\n"
    ),
    "a function that imports tf behind a star import": Case(
        V1,
        STAR + "def f(c):\n    return tf.Session(config=npu_config_proto(config_proto=c))\n"
        "def g(x):\n    import tensorflow as tf\n    return tf.contrib.tpu.cross_replica_sum(x)\n",
        STAR + LIFTED + "def f(c):\n    return tf.Session(config=npu_config_proto(config_proto=c))\n"
        "def g(x):\n    import tensorflow.compat.v1 as tf\n    return tf.tpu.cross_replica_sum(x)\n",
    ),
    "a star import with nothing but the switch before it": Case(
        V1,
        HEAD + STAR + "from tensorflow.contrib import layers\nop = util.set_iteration_per_loop(sess, op, 10)\n"
        "fc = layers.fully_connected(x, 512)\n",
        HEAD + "tf.compat.v1.disable_v2_behavior()\n" + STAR + "from tensorflow.contrib import layers\n"
        "op = util.set_iteration_per_loop(sess, op, 10)\nfc = layers.fully_connected(x, 512)\n",
    ),
    "a star import beside functions that import tf": Case(
        V1,
        "from tensorflow.contrib import layers\n" + STAR + "def f(x):\n    import tensorflow as tf\n"
        "    return tf.sequence_mask(x, 8), layers.fully_connected(npu_ops.dropout(x), 512)\n",
    ),
    "a star import beside names that both versions have": Case(
        V1,
        "from tensorflow.contrib import layers\n" + HEAD + STAR + "def f(x):\n"
        "    return tf.math.unsorted_segment_sum(x, x, 9), layers.fully_connected(npu_ops.dropout(x), 512)\n",
    ),
    "a star import in a function": Case(
        V1,
        "def f(c):\n    import tensorflow.compat.v1 as tf\n    "
        + STAR
        + "    return tf.Session(config=npu_config_proto(config_proto=c))\n",
    ),
    "a name of tf.contrib where only the switch has TensorFlow": Case(
        V1,
        "from tensorflow import estimator as est\nsession = est.ModeKeys.TRAIN\n"
        + HEAD
        + "import tensorflow.contrib.eager as tfe\n\ntfe.enable_eager_execution()\n"
        + HEAD
        + STAR
        + "\n"
        "sess = tf.Session(config=npu_config_proto())\n",
        "from tensorflow import estimator as est\nimport tensorflow.compat.v1 as tensorflow\n"
        "tensorflow.disable_v2_behavior()\nsession = est.ModeKeys.TRAIN\n"
        + HEAD
        + "\ntensorflow.enable_eager_execution()\n"
        + HEAD
        + STAR
        + LIFTED
        + "\n"
        "sess = tf.Session(config=npu_config_proto())\n",
    ),
    "compat.v1 imported, and gelu replaced": Case(
        V1,
        LIFTED
        + "tf.disable_v2_behavior()\nx = tf.placeholder(tf.float32)\n"
        + HEAD
        + STAR
        + "y = tf.Session(config=npu_config_proto()).run(npu_unary_ops.gelu(x))\n",
    ),
    "a star import behind which tf is imported instead": Case(
        V1,
        HEAD + "from tensorflow.contrib import gan\n" + STAR + "\nsess = tf.train.SessionManager().prepare_session("
        '"", config=npu_config_proto())\ngan.f(ops)\n',
        "from tensorflow.contrib import gan\n" + STAR + LIFTED + "tf.disable_v2_behavior()\n\n"
        'sess = tf.train.SessionManager().prepare_session("", config=npu_config_proto())\ngan.f(ops)\n',
    ),
    "an import of a part, beside a name that moves into it": Case(
        V1,
        HEAD + "from tensorflow import estimator as est\n\ndef f(d):\n    return est.ModeKeys.TRAIN, "
        "tf.contrib.tpu.InputPipelineConfig.PER_HOST_V2\n",
        LIFTED + "from tensorflow import estimator as est\n\ndef f(d):\n    return est.ModeKeys.TRAIN, "
        "tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2\n",
    ),
    "Keras in a file that is switched to graphs": Case(
        V1,
        HEAD + "x = tf.placeholder(tf.float32)\nmodel = tf.keras.Sequential()\n"
        'model.compile(tf.optimizers.Adam(), "mse")\nmodel.fit(x)\n',
        HEAD + STAR + "tf.compat.v1.disable_v2_behavior()\n"
        "npu_keras_sess = set_keras_session_npu_config()\nx = tf.compat.v1.placeholder(tf.float32)\n"
        'model = tf.keras.Sequential()\nmodel.compile(tf.optimizers.Adam(), "mse")\nmodel.fit(x)\n'
        "close_session(npu_keras_sess)\n",
    ),
    "dropout in a file of both versions": Case(
        {},
        HEAD + "def f(x):\n    import tensorflow.compat.v1 as tf\n    return tf.nn.dropout(x, 0.5)\n"
        "def g(x):\n    return tf.nn.dropout(tf.placeholder(tf.float32), 0.5)\n",
        HEAD + "from npu_shim.npu_init import npu_ops\n"
        "def f(x):\n    import tensorflow.compat.v1 as tf\n    return npu_ops.dropout(x, 0.5)\n"
        "def g(x):\n    return tf.nn.dropout(tf.placeholder(tf.float32), 0.5)\n",
    ),
    "dropout in a file of TensorFlow 2 with a layer of 1 that is replaced": Case(
        {},
        HEAD + "@tf.function\ndef f(x):\n    return tf.layers.dropout(x, 0.5, training=True), tf.nn.dropout(x, 0.5)\n",
        HEAD + STAR + "@tf.function\ndef f(x):\n    return npu_ops.dropout(x, 0.5), tf.nn.dropout(x, 0.5)\n",
    ),
    "dropout in a file of TensorFlow 2 with a class of tf.contrib that is replaced": Case(
        {},
        HEAD + "from tensorflow.contrib.mixed_precision import LossScaleOptimizer\n@tf.function\ndef f(x, o):\n"
        "    return LossScaleOptimizer(o, tf.contrib.mixed_precision.FixedLossScaleManager(8)), "
        "tf.nn.dropout(x, 0.5)\n",
        HEAD + "from tensorflow.contrib.mixed_precision import LossScaleOptimizer\n" + STAR + "@tf.function\n"
        "def f(x, o):\n    return NPULossScaleOptimizer(o, FixedLossScaleManager(8)), tf.nn.dropout(x, 0.5)\n",
    ),
    "a rate beside a comment": Case(
        {},
        HEAD + "net = tf.nn.dropout(net, rate  # high\n  = rate)\n",
        HEAD + STAR + "net = npu_ops.dropout(net, keep_prob  # high\n  = 1 - rate)\n",
    ),
    "an optimizer over two lines without its shards": Case(
        {},
        HEAD + 'def f(params):\n    train_op = tf.contrib.tpu.CrossShardOptimizer(params\n      ["opt"]).go(x)\n',
        HEAD + 'def f(params):\n    train_op = (params\n      ["opt"]).go(x)\n',
    ),
}


@pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))
def test_a_file(case: Case) -> None:
    converter = Converter(Settings(**case.settings))  # type: ignore[arg-type]
    result = converter.convert(case.before.encode())
    assert not result.unreadable, result.diagnostics
    after = case.before if result.new is None else result.new.decode()
    assert after == (case.after or case.before)
    assert converter.convert(after.encode()).new is None


REPORTED: dict[str, tuple[dict[str, object], str]] = {
    "inside a name of tf.contrib": (V1, "def f():\n    return (tf.contrib  # c\n      .rnn.GRUCell)(2)\n"),
    "inside a name of tf.contrib, once more": (
        V1,
        "def f():\n    return tf.contrib.slim.conv2d(x), tf.contrib.rnn.GRUBlockCell(2), (tf.contrib  # c\n"
        "      .rnn.GRUCell)(2)\n",
    ),
    "beside an argument that goes": (
        V1,
        "def f():\n    return tf.contrib.layers.xavier_initializer(True,  # c\n      1)\n",
    ),
}


@pytest.mark.parametrize("settings,text", list(REPORTED.values()), ids=list(REPORTED))
def test_a_comment_in_the_call_is_reported(settings: dict[str, object], text: str) -> None:
    found = Converter(Settings(**settings)).convert((HEAD + text).encode())  # type: ignore[arg-type]
    assert [d for d in found.diagnostics if d.kind == FINDING and "comment" in d.message]
