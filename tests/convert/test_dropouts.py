"""Dropout that drops only in training: static conditions and conditions that may be tensors."""

from __future__ import annotations

import pathlib

import pytest
from convert_tf2npu.engine.converter import FINDING, Converter
from convert_tf2npu.project.project import Project

HEAD = "import tensorflow.compat.v1 as tf\nfrom tensorflow.contrib import slim\n"
LAYER = "y = tf.layers.dropout(x, 0.4, training=%s)\n"
DECIDED = {
    "True": "True",
    "a mode key": "mode == tf.estimator.ModeKeys.TRAIN",
    "a mode key to the left": "tf.estimator.ModeKeys.TRAIN == mode",
    "a mode as a string": "mode == 'train'",
    "a test for None": "labels is not None",
    "a conjunction that ends in a decided one": "FLAGS.x and mode != 'eval'",
    "a negation": "not testing",
    "two tests": "mode == 'train' and not testing",
    "membership": "mode in modes",
    "a flag": "tf.app.flags.FLAGS.is_training",
    "a bool": "bool(phase)",
    "a choice": "True if a else False",
}


@pytest.mark.parametrize("test", list(DECIDED.values()), ids=list(DECIDED))
def test_a_static_condition_is_converted(test: str) -> None:
    new = Converter().convert((HEAD + LAYER % test).encode()).new
    choice = "" if test == "True" else f" if ({test}) else x" if " if " in test else f" if {test} else x"
    assert new is not None and new.decode().endswith(f"y = npu_ops.dropout(x, 0.6){choice}\n")


VARIABLES = {
    "a variable": "training = mode == 'train'\n%s",
    "an argument by default and by call": "def cnn(x, training=False):\n    %s    return y\ny = cnn(x)\ny = cnn(x, True)\n",
    "an argument of a function that calls itself": "def cnn(x, training):\n    x = cnn(x, training)\n    %s    return y\ncnn(x, True)\n",
}


@pytest.mark.parametrize("text", list(VARIABLES.values()), ids=list(VARIABLES))
def test_a_name_that_holds_a_bool_is_followed(text: str) -> None:
    new = Converter().convert((HEAD + text % LAYER % "training").encode()).new
    assert new is not None and "y = npu_ops.dropout(x, 0.6) if training else x\n" in new.decode()


def test_an_attribute_that_holds_a_bool_is_followed() -> None:
    text = (
        "class Net:\n    def __init__(self, x, training):\n        self.training = training\n    def f(self):\n"
        "        return tf.layers.dropout(self.x, 0.4, training=self.training)\n"
    )
    new = Converter().convert((HEAD + text + "net = Net(x, training=False)\n").encode()).new
    assert new is not None and b"return npu_ops.dropout(self.x, 0.6) if self.training else self.x\n" in new
    for other in ("net = Net(x, placeholder)\n", "make(Net)\n", "class Big(Net):\n    pass\n", ""):
        assert Converter().convert((HEAD + text + other).encode()).new is None, other


METHOD = (
    "class Net:\n    def encode(self, x, training=True):\n        return tf.layers.dropout(x, 0.4, training=training)\n"
    "    def train(self, x):\n        return self.encode(x)\n    def evaluate(self, x):\n        return self.encode(x, False)\n"
)


def test_a_parameter_of_a_method_is_followed() -> None:
    new = Converter().convert((HEAD + METHOD + "text = line.encode('utf-8')\n").encode()).new
    assert new is not None and b"return npu_ops.dropout(x, 0.6) if training else x\n" in new
    others = ("net.encode(x, phase)\n", "Net.encode(net, True, phase)\n", "f = net.encode\n", "net.encode(*a)\n")
    for other in others:
        assert Converter().convert((HEAD + METHOD + other).encode()).new is None, other
    of_keras = METHOD.replace("class Net:", "class Net(tf.keras.Model):")
    assert b"npu_ops" not in (Converter().convert((HEAD + of_keras).encode()).new or b"")


def test_a_parameter_of_a_method_in_a_project(tmp_path: pathlib.Path) -> None:
    net = HEAD + METHOD
    paths = [str(tmp_path / "net.py"), str(tmp_path / "run.py")]
    (tmp_path / "net.py").write_text(net)
    for given, converted in (("phase", False), ("False", True)):
        (tmp_path / "run.py").write_text(f"def run(net, x, phase):\n    return net.encode(x, {given})\n")
        result = Converter(project=Project(paths)).convert(net.encode(), paths[0])
        assert (result.new is not None) == converted


UNDECIDED = {
    "an argument": "def cnn(x, training):\n    %s    return y\n",
    "an argument that may be a placeholder": "def cnn(x, training):\n    %s    return y\ncnn(x, True)\ncnn(x, phase)\n",
    "an argument that another function asks": "def cnn(x, training):\n    %s    return y\ndef other(training):\n    if training:\n        pass\n",
    "an attribute of something": "def cnn(x, net):\n    training = net.training\n    %s    return y\n",
    "a conjunction that ends in an open one": "training = mode == 'train' and flag\n%s",
    "a comparison of two values": "training = step < last\n%s",
    "a bool of the project": "from mine import bool\ntraining = bool(x)\n%s",
}


def test_a_message_has_the_code_on_one_line() -> None:
    text = "flag = phase()\ny = tf.layers.dropout(\n    net(\n        x\n    ),\n    0.4, training=flag)\n"
    messages = [d.message for d in Converter().convert((HEAD + text).encode()).diagnostics if d.kind == FINDING]
    assert ["npu_ops.dropout(net(x), 0.6) if flag else net(x)" in message for message in messages] == [True]


@pytest.mark.parametrize("text", list(UNDECIDED.values()), ids=list(UNDECIDED))
def test_a_condition_that_may_be_a_tensor_is_reported_with_both_forms(text: str) -> None:
    result = Converter().convert((HEAD + text % LAYER % "training").encode())
    assert result.new is None
    assert [(d.code, d.kind) for d in result.diagnostics if d.code == "NPU107"] == [("NPU107", FINDING)]
    message = next(d.message for d in result.diagnostics if d.code == "NPU107")
    assert "Write npu_ops.dropout(x, 0.6) if training else x, " in message
    assert message.endswith("or use tf.cond for a tensor")


def test_a_condition_that_is_a_tensor_is_reported_with_cond() -> None:
    text = "training = tf.placeholder(tf.bool)\n" + LAYER % "training"
    messages = [d.message for d in Converter().convert((HEAD + text).encode()).diagnostics if d.code == "NPU107"]
    assert len(messages) == 1
    assert messages[0].endswith("is a tensor. Write tf.cond(training, lambda: npu_ops.dropout(x, 0.6), lambda: x)")


SLIM = {
    "a call that says all": (
        "y = slim.dropout(x, k, is_training=mode == 'train', scope='d')\n",
        "y = npu_ops.dropout(x, k, name='d') if mode == 'train' else x\n",
    ),
    "a call among others": (
        "y = f(slim.dropout(inputs=x, keep_prob=k, is_training=not testing)) + 1\n",
        "y = f(npu_ops.dropout(x=x, keep_prob=k) if not testing else x) + 1\n",
    ),
    "a call in a sum": (
        "y = 1 + slim.dropout(x, k, is_training=not testing)\n",
        "y = 1 + (npu_ops.dropout(x, k) if not testing else x)\n",
    ),
    "a call that always drops": ("y = slim.dropout(x, k)\n", "y = npu_ops.dropout(x, k)\n"),
    "a call with its defaults": ("y = slim.dropout(x)\n", "y = npu_ops.dropout(x, keep_prob=0.5)\n"),
    "a call inside an unknown scope that says all": (
        "with slim.arg_scope(scope()):\n    y = slim.dropout(x, k, is_training=True)\n",
        "    y = npu_ops.dropout(x, k)\n",
    ),
    "a call inside a scope": (
        "with slim.arg_scope([slim.dropout, slim.batch_norm], is_training=not testing):\n    y = slim.dropout(x, k)\n",
        "    y = npu_ops.dropout(x, k) if not testing else x\n",
    ),
    "a call inside two scopes": (
        "with slim.arg_scope([slim.dropout], is_training=a), slim.arg_scope([slim.dropout], is_training=True):\n"
        "    y = slim.dropout(x, k)\n",
        "    y = npu_ops.dropout(x, k)\n",
    ),
    "a call of another path": (
        "from tensorflow.contrib.layers.python.layers import layers\ny = layers.dropout(x, k, is_training=True)\n",
        "y = npu_ops.dropout(x, k)\n",
    ),
}


@pytest.mark.parametrize("text,part", list(SLIM.values()), ids=list(SLIM))
def test_slim_dropout_is_converted(text: str, part: str) -> None:
    new = Converter().convert((HEAD + text).encode()).new
    assert new is not None and new.decode().endswith(part)


SLIM_STAYS: dict[str, str] = {
    "a tensor": "y = slim.dropout(x, k, is_training=phase)\n",
    "a scope of its own": "with slim.arg_scope(scope()):\n    y = slim.dropout(x, k)\n",
    "a scope that gives more": "with slim.arg_scope([slim.dropout], is_training=True, noise_shape=n):\n"
    "    y = slim.dropout(x, k)\n",
    "a function that a scope may be around": "def f(x):\n    return slim.dropout(x, k)\n"
    "with slim.arg_scope(s):\n    f(x)\n",
    "a noise shape": "y = slim.dropout(x, k, n, is_training=True)\n",
    "a collected output": "y = slim.dropout(x, k, is_training=True, outputs_collections=c)\n",
    "hidden arguments": "y = slim.dropout(x, **kw)\n",
    "a computed input": "y = slim.dropout(f(x), k, is_training=not testing)\n",
}


@pytest.mark.parametrize("text", list(SLIM_STAYS.values()), ids=list(SLIM_STAYS))
def test_slim_dropout_that_is_not_converted_is_reported_with_the_fix(text: str) -> None:
    result = Converter().convert((HEAD + text).encode())
    assert result.new is None
    found = [d.message for d in result.diagnostics if d.code == "NPU118"]
    assert len(found) == 1 and "write npu_ops.dropout(" in found[0].lower()


def test_a_scope_in_an_importing_file_may_apply_to_a_call(tmp_path: pathlib.Path) -> None:
    net = HEAD + "def net(x):\n    return slim.dropout(x, 0.5)\n"
    files = {"net.py": net, "use.py": "import net\n", "main.py": "import use\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in files]
    assert Converter(project=Project(paths)).convert(net.encode(), paths[0]).new is not None
    (tmp_path / "main.py").write_text("import use, slim\nwith slim.arg_scope(s):\n    use.run()\n")
    assert Converter(project=Project(paths)).convert(net.encode(), paths[0]).new is None


def test_a_condition_that_other_files_pass_is_followed(tmp_path: pathlib.Path) -> None:
    net = HEAD + "def net(x, training):\n    return tf.layers.dropout(x, 0.5, training=training)\n"
    use = "import tensorflow as tf\nfrom net import net\nnet(x, training=mode == tf.estimator.ModeKeys.TRAIN)\n"
    for name, text in (("net.py", net), ("use.py", use)):
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / "net.py"), str(tmp_path / "use.py")]
    new = Converter(project=Project(paths)).convert(net.encode(), paths[0]).new
    assert new is not None and new.decode().endswith("return npu_ops.dropout(x, 0.5) if training else x\n")


FUNCTIONS = {
    "tested by if at its start": ("    if training:\n        x = noise(x)\n", True),
    "tested by a negation": ("    assert not training or x\n", True),
    "tested in a conditional expression": ("    r = f(0.5 if training else 0)\n", True),
    "an attribute, tested": ("    if not self.training:\n        log()\n", True),
    "tested in a branch alone": ("    if deep:\n        if training:\n            x = noise(x)\n", False),
    "tested behind a return": ("    if deep:\n        return x\n    if training:\n        x = noise(x)\n", False),
    "tested when something else holds": ("    if deep and training:\n        x = noise(x)\n", False),
    "tested in a lambda": ("    f = lambda: 1 if training else 0\n", False),
    "tested by TensorFlow": ("    x = tf.cond(training, f, g)\n", False),
    "bound anew": ("    if training:\n        log()\n    training = tf.constant(True)\n", False),
    "handed on to the function itself": ("    f(self, x, training)\n", False),
}


def is_converted(text: str) -> bool:
    result = Converter().convert((HEAD + text).encode())
    assert not result.unreadable
    return result.new is not None


@pytest.mark.parametrize("body,expected", list(FUNCTIONS.values()), ids=list(FUNCTIONS))
def test_an_argument_that_its_function_tests_is_no_tensor(body: str, expected: bool) -> None:
    name = "self.training" if "self.training" in body else "training"
    text = "def f(self, x, training):\n" + body + "    " + LAYER % name + "    return y\n"
    assert is_converted(text + "f(None, x, flag)\n") == expected


def test_a_recursive_function_is_static_if_its_callers_are() -> None:
    text = "def f(x, training):\n    if x:\n        f(x, training)\n    " + LAYER % "training" + "    return y\n"
    assert is_converted(text + "f(x, True)\n")
    assert not is_converted(text + "f(x, flag)\n")
