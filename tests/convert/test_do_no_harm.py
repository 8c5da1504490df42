"""Code that only looks like TensorFlow stays as it is, byte for byte."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
from convert_tf2npu.engine.converter import FINDING, Converter
from convert_tf2npu.main import main

HEAD = "import tensorflow as tf\n"
MAIN = str(main.__code__.co_filename)
UNTOUCHED = {
    "a session of requests": "import requests\ns = requests.Session()\n",
    "a session of the project": "from db import Session\ns = Session()\n",
    "a session class of its own": "class Session:\n    pass\ns = Session()\n",
    "a regular expression": 'import re\npattern = re.compile("fit")\npattern.match(text)\n',
    "another compile": "tf.xla.experimental.compile(f, [x])\n",
    "a fit of something else": "import statsmodels.api as sm\nsm.OLS(y, x).fit()\n",
    "a batch method of its own": "class Reader:\n    def train(self):\n        return self.batch(32)\n    def batch(self, n):\n"
    "        return self.lines[:n]\n",
    "a batch of a loader": 'from data import Loader\nloader = Loader("train")\nx = loader.batch(5)\n',
    "a batch of an argument": "def train(dataset):\n    return dataset.batch(5)\n",
    "a name that is a dataset only sometimes": "if cached:\n    train_data = load()\nelse:\n    train_data = tf.data.Dataset.range(3)\n"
    "train_data.batch(2)\n",
    "a batch queue": "x, y = tf.train.batch([x, y], batch_size=8)\n",
    "a function called gelu that is a relu": "def gelu(x):\n    return tf.nn.relu(x)\n",
    "a function called gelu of two tensors": "def gelu(x, y):\n    return 0.5 * x * (1 + tf.tanh(0.79788456 * (y + 0.044715 * x ** 3)))\n",
    "a function called gelu with other constants": "def gelu(x):\n    return 0.5 * x * (1 + tf.tanh(0.79788456 * (x + 0.05 * tf.pow(x, 3))))\n",
    "a dropout of its own": "class Net:\n    def f(self, x):\n        return self.dropout(x, 0.5)\n",
    "a dropout of the project": "from layers import dropout\ny = dropout(x, keep_prob=0.5)\n",
    "a RunConfig of its own": "class RunConfig:\n    pass\nc = RunConfig()\n",
    "an estimator of the project": "import my.estimator as est\ne = est.Estimator(model_fn)\n",
    "an EstimatorSpec": "def f(mode, loss):\n    return tf.estimator.EstimatorSpec(mode, loss=loss)\n",
    "a device of something else": 'import torch\ntorch.device("gpu:0")\n',
    "a CPU device in its own quotes": 'with tf.device("/cpu:0"):\n    pass\n',
    "a model that is not compiled": "layer = tf.keras.layers.Dense(1)\nm = SVC()\nm.fit(x, y)\n",
    "a pattern that is compiled, and a fit beside Keras": 'layer = tf.keras.layers.Dense(1)\np = load()\np.compile("a", flags=2)\np.fit(x)\n',
    "a model that is only compiled": 'layer = tf.keras.layers.Dense(1)\nm = load()\nm.compile(loss="mse")\n',
    "a Keras model that is only called": "m = tf.keras.Sequential([])\ny = m(x)\n",
    "a name shadowed by an argument": "def f(tf):\n    return tf.Session()\n",
    "code in a string": 'text = "tf.Session()"\n# tf.Session()\n',
    "an import that nothing uses": "def net(x):\n    return tf.nn.relu(x)\n",
    "a shard of a helper": "import utils\nmine = utils.shard(names, n)[k]\n",
    "a shard of TPU code": "from tensorflow.contrib import tpu\nstep = tpu.shard(fn, inputs=[])\n",
    "a shard that the user computes": "def train_input_fn(num_workers, worker_id):\n    d = tf.data.TFRecordDataset(files)\n"
    "    return d.shard(num_workers, worker_id)\n",
    "a flag that the user computes": "def train_input_fn(flag):\n    return tf.data.Dataset.range(9).batch(2, drop_remainder=flag)\n",
    "a flag that the user set to False": "def train_input_fn():\n    return tf.data.Dataset.range(9).batch(2, drop_remainder=False)\n",
    "a flag by place": "def train_input_fn():\n    return tf.data.Dataset.range(9).batch(4, True)\n",
    "Horovod, when nobody asks": "import os, horovod.tensorflow as hvd\nhvd.init(comm)\nr = hvd.rank()\n",
    "a gradient of the user's own": "g = tf.gradients(y, x, grad_ys=dy)\n",
    "an optimizer, when nobody asks": "op = tf.train.AdamOptimizer(0.1).minimize(loss)\n",
    "a gelu method of something": "y = self.gelu(x)\n",
    "a gelu of any arguments": "def gelu(*args, **kwargs):\n    return activations.gelu(*args, **kwargs)\n",
    "options of the user": 'tf.config.optimizer.set_experimental_options({"constant_folding": True})\n',
    "GPU memory options": 'for g in tf.config.experimental.list_physical_devices("GPU"):\n'
    "    tf.config.experimental.set_memory_growth(g, True)\n",
}


@pytest.mark.parametrize("text", list(UNTOUCHED.values()), ids=list(UNTOUCHED))
def test_stays(text: str) -> None:
    result = Converter().convert((HEAD + text).encode())
    assert result.new is None
    assert not result.unreadable


REPORTED = {
    "a session with hidden arguments": ("s = tf.Session(**options)\n", "NPU101"),
    "an undecided batch": (
        "def input_fn(is_training):\n    return tf.data.Dataset.range(9).batch(2)\ndef evaluate():\n    pass\n",
        "drop_remainder=is_training",
    ),
    "an evaluation batch": ("def eval_input_fn():\n    return tf.data.Dataset.range(9).batch(2)\n", "feeds evaluation"),
    "a device chosen by a function": (
        "with tf.device(tf.train.replica_device_setter(1)):\n    pass\n",
        "chosen at run time",
    ),
    "a device of None": ("with tf.device(None):\n    pass\n", "is not a string"),
    "a numbered GPU whose number is taken from somewhere": (
        "with tf.device('/gpu:%d' % numbers.pop()):\n    pass\n",
        "chosen at run time",
    ),
    "a GPU of another machine": (
        "with tf.device('/job:ps/task:%d/gpu:0' % i):\n    pass\n",
        "chosen at run time",
    ),
    "a model of unknown kind that is compiled as Keras does it": (
        'tf.disable_v2_behavior()\nm = tf.keras.utils.multi_gpu_model(MODELS[k](), 2)\nm = wrapped(m)\nm.compile(loss="mse", optimizer=o)\nm.fit(x)\n',
        "may train a Keras model",
    ),
    "a dropout of unknown version": ("def f(x):\n    return tf.nn.dropout(x, 0.1)\n", "Pass it by keyword"),
    "an erf gelu": ("def gelu(x):\n    return x * 0.5 * (1.0 + tf.math.erf(x / 1.4142135623730951))\n", "erf form"),
    "an optimizer without its scale": (
        "def train(opt, scale):\n    return tf.train.experimental.MixedPrecisionLossScaleOptimizer(opt, scale)\n",
        "NPU116",
    ),
    "a scale without its optimizer": ("scale = tf.train.experimental.FixedLossScale(128)\n", "NPU116"),
    "a noise shape": ("sess = None\nx = tf.nn.dropout(x, rate=0.1, noise_shape=[1, 2])\n", "noise_shape"),
}


@pytest.mark.parametrize("text,words", list(REPORTED.values()), ids=list(REPORTED))
def test_code_that_is_not_converted_is_reported_with_its_place(text: str, words: str) -> None:
    result = Converter().convert((HEAD + text).encode())
    assert result.new is None
    said = [d for d in result.diagnostics if words in d.message or words == d.code]
    assert len(said) == 1 and said[0].line >= 2 and said[0].col >= 1


CHANGED = {
    "a numbered GPU in an f-string": (
        'for i in gpus:\n    with tf.device(f"/gpu:{i}"):\n        pass\n',
        '    with tf.device("/cpu:0"):\n',
    ),
    "a numbered GPU by format": (
        "with tf.device('GPU:{}'.format(FLAGS.gpu)):\n    pass\n",
        "with tf.device('CPU:0'):\n",
    ),
    "a gelu that logs, which goes on logging": (
        "def gelu(x):\n    print(x)\n    return 0.5 * x * (1 + tf.tanh(0.79788456 * (x + 0.044715 * x ** 3)))\n",
        "    print(x)\n    return npu_unary_ops.gelu(x)\n",
    ),
    "a model class of the file": (
        "class Net(tf.keras.Model):\n    pass\nnet = Net()\nnet.fit(x, y)\n",
        "npu.open().as_default()\nnet = Net()\nnet.fit(x, y)\n",
    ),
    "the training side of a mode": (
        "def input_fn(mode):\n    d = tf.data.TFRecordDataset(files)\n"
        "    if mode == tf.estimator.ModeKeys.TRAIN:\n        d = d.shuffle(9)\n        d = d.batch(8)\n"
        "    else:\n        d = d.batch(8)\n    return d\n",
        "d = d.shuffle(9)\n        d = d.batch(8, drop_remainder=True)\n    else:\n        d = d.batch(8)\n",
    ),
    "a dataset that a function returns": (
        "def read():\n    return tf.data.TextLineDataset(f).map(g)\ntrain_set = read().batch(4)\n",
        "train_set = read().batch(4, drop_remainder=True)",
    ),
    "a dataset in a loop": (
        "def train_input_fn():\n    d = tf.data.Dataset.range(9)\n    for f in maps:\n        d = d.map(f)\n"
        "    return d.batch(3)\n",
        "return d.batch(3, drop_remainder=True)",
    ),
    "an Estimator whose configuration is chosen from two": (
        'if a:\n    c = tf.estimator.RunConfig("x")\nelse:\n    c = tf.estimator.RunConfig(model_dir="y")\n'
        "e = tf.estimator.Estimator(f, config=c)\n",
        'c = NPURunConfig(model_dir="x")\nelse:\n    c = NPURunConfig(model_dir="y")\ne = NPUEstimator(f, config=c)\n',
    ),
    "an Estimator that warm-starts by place": (
        "e = tf.estimator.Estimator(f, d, None, p, w)\n",
        "e = NPUEstimator(f, d, NPURunConfig(), p, warm_start_from=w)\n",
    ),
    "a parenthesised configuration": (
        "s = tf.Session(config=(cfg))\n",
        "s = tf.Session(config=(npu_config_proto(config_proto=cfg)))\n",
    ),
    "a config given by place": (
        's = tf.Session("", None, cfg)\n',
        's = tf.Session("", None, npu_config_proto(config_proto=cfg))\n',
    ),
    "a run configuration given by place in parentheses": (
        'c = tf.estimator.RunConfig(("x"), (1))\n',
        'c = NPURunConfig(model_dir=("x"), tf_random_seed=(1))\n',
    ),
    "a session inside blocks of blocks": (
        "try:\n    with a:\n        if b:\n            s = tf.Session()\nexcept E as e:\n    if e:\n"
        "        s = tf.Session()\nelse:\n    for c in d:\n        while c:\n            s = tf.Session()\n"
        "finally:\n    if c:\n        s = tf.Session()\n",
        "try:\n    with a:\n        if b:\n            s = tf.Session(config=npu_config_proto())\n"
        "except E as e:\n    if e:\n        s = tf.Session(config=npu_config_proto())\nelse:\n"
        "    for c in d:\n        while c:\n            s = tf.Session(config=npu_config_proto())\n"
        "finally:\n    if c:\n        s = tf.Session(config=npu_config_proto())\n",
    ),
    "TPUEstimator by another name": (
        "from tensorflow.contrib import tpu as t\ne = t.TPUEstimator(f, use_tpu=u)\n",
        "e = t.TPUEstimator(f, use_tpu=False, ",
    ),
    "a scale with its optimizer": (
        "scale = tf.train.experimental.FixedLossScale(128)\n"
        "opt = tf.train.experimental.MixedPrecisionLossScaleOptimizer(opt, scale)\n",
        "scale = FixedLossScaleManager(128)\nopt = NPULossScaleOptimizer(opt, scale)",
    ),
    "a scale by its keyword": (
        "scale = tf.train.experimental.FixedLossScale(loss_scale_value=128)\n"
        "opt = tf.train.experimental.MixedPrecisionLossScaleOptimizer(opt, scale)\n",
        "scale = FixedLossScaleManager(loss_scale=128)\n",
    ),
    "a dynamic scale with its multiplier": (
        "scale = tf.train.experimental.DynamicLossScale(multiplier=m)\n"
        "opt = tf.train.experimental.MixedPrecisionLossScaleOptimizer(opt, scale)\n",
        "incr_ratio=m, decr_ratio=1 / m)\n",
    ),
    "a dynamic scale with a computed multiplier": (
        "scale = tf.train.experimental.DynamicLossScale(multiplier=m + 1)\n"
        "opt = tf.train.experimental.MixedPrecisionLossScaleOptimizer(opt, scale)\n",
        "incr_ratio=m + 1, decr_ratio=1 / (m + 1))\n",
    ),
    "a chained session": ("v = tf.Session().run(x)\n", "v = tf.Session(config=npu_config_proto()).run(x)\n"),
}


@pytest.mark.parametrize("text,part", list(CHANGED.values()), ids=list(CHANGED))
def test_is_converted(text: str, part: str) -> None:
    converter = Converter()
    new = converter.convert((HEAD + text).encode()).new
    assert new is not None and part in new.decode()
    assert converter.convert(new).new is None


def test_there_is_never_a_question(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(
        HEAD + "import horovod.tensorflow as hvd\ne = tf.estimator.Estimator(f)\ne.train(input_fn, hooks=hooks)\n"
        "d = d.shard(2, 0)\n"
    )
    done = subprocess.run(
        [sys.executable, MAIN, "-i", "train.py", "-o", "out.py", "-d", "horovod"],
        cwd=str(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0 and (tmp_path / "out.py").exists(), done.stderr


def test_the_support_of_each_call_is_reported_with_advice(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(HEAD + "names = tf.train.string_input_producer(files)\n")
    assert main(["-i", str(tmp_path / "train.py"), "-r", str(tmp_path / "reports")]) == 0
    report = (tmp_path / "reports" / "report.txt").read_text()
    assert "string_input_producer" in report and "tf.data" in report


@pytest.mark.parametrize(
    ("use", "advice"), [("", "Increment it in AdamW.apply_gradients"), ("global_step", "Remove it")]
)
def test_the_global_step_of_an_own_optimizer(use: str, advice: str) -> None:
    """The advice to pass the step would stop it for good where the optimizer ignores it."""
    text = (
        "class AdamW(tf.train.Optimizer):\n    def apply_gradients(self, pairs, global_step=None, name=None):\n"
        f"        return tf.group([v.assign_sub(g) for g, v in pairs], {use})\n"
        "def train_op(pairs):\n    step = tf.train.get_or_create_global_step()\n"
        "    done = AdamW(False, 'a').apply_gradients(pairs, global_step=step)\n"
        "    return tf.group(done, step.assign(step + 1))\n"
    )
    (finding,) = [d for d in Converter().convert((HEAD + text).encode()).diagnostics if d.kind == FINDING]
    assert finding.code == "NPU226" and advice in finding.message
