"""Gelu in many notations, and functions that only resemble it."""

from __future__ import annotations

import pytest
from convert_tf2npu.engine.converter import FINDING, Converter

HEAD = "import math\nimport numpy as np\nimport tensorflow as tf\nfrom tensorflow.keras import backend as K\n"
BODIES = {
    "with np.power": "return 0.5 * x * (1 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * np.power(x, 3))))",
    "with tf.pow": "return 0.5 * x * (1 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3))))",
    "with tf.math": "return 0.5 * x * (1.0 + tf.math.tanh(tf.math.sqrt(2 / np.pi) * "
    "(x + 0.044715 * tf.math.pow(x, 3.0))))",
    "with a product": "return x * 0.5 * (1 + tf.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))",
    "with an operator": "return 0.5 * x * (1 + tf.nn.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))",
    "with a square": "return 0.5 * x * (1 + tf.tanh(x * 0.79788456 * (1 + 0.044715 * tf.square(x))))",
    "with tf.sqrt of a constant": "return 0.5 * x * (1 + tf.tanh(tf.sqrt(tf.constant(2.0 / np.pi)) * "
    "(x + 0.044715 * tf.pow(x, 3))))",
    "with functions for operators": "return tf.multiply(x, tf.multiply(0.5, tf.add(1.0, tf.tanh("
    "0.7978845608 * (x + 0.044715 * tf.pow(x, 3))))))",
    "with the Keras backend": "return 0.5 * x * (1 + K.tanh(K.sqrt(2 / np.pi) * (x + 0.044715 * K.pow(x, 3))))",
    "with a division": "return x / 2 * (1 + tf.tanh(0.7978845608 * (x + 0.044715 * tf.pow(x, 3))))",
    "with casts": "c = tf.cast(0.044715, x.dtype)\n    return 0.5 * x * (1.0 + tf.tanh(0.7978845608028654 * "
    "(x + c * tf.pow(x, 3))))",
    "with the type in a variable": "dtype = x.dtype\n    c = tf.cast(0.044715, dtype)\n"
    "    return 0.5 * x * (1.0 + tf.tanh(0.7978845608 * (x + c * x ** 3)))",
    "with annotations": "cdf: tf.Tensor = 0.5 * (1.0 + tf.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))\n"
    "    return x * cdf",
    "in steps": "y = x + 0.044715 * tf.pow(x, 3)\n    y *= math.sqrt(2 / math.pi)\n    y = 1 + tf.tanh(y)\n"
    "    return 0.5 * x * y",
    "under a name scope": 'with tf.name_scope("gelu"):\n'
    "        return 0.5 * x * (1 + tf.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))",
    "by the logistic function": "return x * tf.sigmoid(2 * 0.7978845608 * (x + 0.044715 * x ** 3))",
    "with a numpy constant": "return 0.5 * x * (1 + tf.tanh(np.sqrt(2 / np.pi).astype(np.float32) * "
    "(x + 0.044715 * tf.pow(x, 3))))",
}


def convert(text: str) -> str:
    result = Converter().convert((HEAD + text).encode())
    assert not result.unreadable, result.diagnostics
    return (result.new or (HEAD + text).encode()).decode()


@pytest.mark.parametrize("body", list(BODIES.values()), ids=list(BODIES))
def test_the_formula_is_found(body: str) -> None:
    assert "return npu_unary_ops.gelu(x)\n" in convert("def act(x):\n    " + body + "\n")


FORMULA = "0.5 * v * (1 + tf.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * tf.pow(v, 3))))"
PLACES = {
    "a lambda": ("gelu = lambda v: %s\n", "gelu = lambda v: npu_unary_ops.gelu(v)\n"),
    "a dictionary of activations": (
        'ACT = {"relu": tf.nn.relu, "gelu": lambda v: %s}\n',
        '"gelu": lambda v: npu_unary_ops.gelu(v)}\n',
    ),
    "a method": ("class Block:\n    def act(self, v):\n        return %s\n", "        return npu_unary_ops.gelu(v)\n"),
    "a static method": (
        "class Block:\n    @staticmethod\n    def act(v):\n        return %s\n",
        "        return npu_unary_ops.gelu(v)\n",
    ),
    "a function in a method of a class in a function": (
        "def outer():\n    class Block:\n        def call(self, x):\n            def act(v):\n"
        "                return %s\n            return act(x)\n",
        "                return npu_unary_ops.gelu(v)\n",
    ),
    "a branch": (
        "def act(v, approximate=True):\n    if approximate:\n        return %s\n    return tf.nn.relu(v)\n",
        "        return npu_unary_ops.gelu(v)\n    return tf.nn.relu(v)\n",
    ),
    "an argument of a call": ("y = tf.layers.dense(%s, 8)\n", "y = tf.layers.dense(npu_unary_ops.gelu(v), 8)\n"),
    "a docstring above it": (
        'def act(v):\n    """The unit.\n\n    Of errors.\n    """\n    return %s\n',
        '    """The unit.\n\n    Of errors.\n    """\n    return npu_unary_ops.gelu(v)\n',
    ),
}


@pytest.mark.parametrize("text,part", list(PLACES.values()), ids=list(PLACES))
def test_the_formula_is_found_in(text: str, part: str) -> None:
    assert part in convert(text % FORMULA)


READY = {
    "y = tf.nn.gelu(h, approximate=True)": "y = npu_unary_ops.gelu(h)",
    "y = tf.nn.gelu(h + b, True)": "y = npu_unary_ops.gelu(h + b)",
    "y = tf.keras.activations.gelu(h, approximate=True)": "y = npu_unary_ops.gelu(h)",
}


@pytest.mark.parametrize("text,new", list(READY.items()))
def test_gelu_of_tensorflow_is_converted_if_it_is_the_tanh_form(text: str, new: str) -> None:
    assert new in convert(text + "\n")


OTHERS = {
    "the erf form": ("def gelu(x):\n    return 0.5 * x * (1.0 + tf.erf(x / tf.sqrt(2.0)))\n", True),
    "the erf form of math": ("def gelu(x):\n    return x * 0.5 * (1 + tf.math.erf(x / math.sqrt(2)))\n", True),
    "the erf form inside other code": ("y = tf.layers.dense(h * 0.5 * (1 + tf.erf(h / np.sqrt(2))), 8)\n", True),
    "the erf form by name": ('y = tf.keras.layers.Dense(8, activation="gelu")(x)\n', True),
    "the erf form by function": ("y = tf.keras.layers.Dense(8, activation=tf.nn.gelu)(x)\n", True),
    "the erf form of TensorFlow": ("y = tf.nn.gelu(x)\n", True),
    "a form that is not to be seen": ("y = tf.nn.gelu(x, approximate=flag)\n", True),
    "the logistic approximation": ("def gelu(x):\n    return x * tf.sigmoid(1.702 * x)\n", False),
    "swish": ("def swish(x):\n    return x * tf.nn.sigmoid(x)\n", False),
    "any arguments": (
        "def gelu(*args):\n    x = args[0]\n    return 0.5 * x * "
        "(1 + tf.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))\n",
        None,
    ),
    "an argument that scales": (
        "def gelu(x, a=0.5):\n    return a * x * (1 + tf.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))\n",
        False,
    ),
    "another constant": ("def gelu(x):\n    return 0.5 * x * (1 + tf.tanh(0.79 * (x + 0.044715 * x ** 3)))\n", False),
    "numpy alone": (
        "def gelu(x):\n    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))\n",
        False,
    ),
    "a relu called gelu": ("def gelu(x):\n    return tf.nn.relu(x)\n", False),
    "a gelu of the project": ("from mine import gelu\ny = gelu(x)\n", False),
}


@pytest.mark.parametrize("text,reported", list(OTHERS.values()), ids=list(OTHERS))
def test_other_functions_are_not_converted(text: str, reported: bool) -> None:
    result = Converter().convert((HEAD + text).encode())
    if reported is not None:
        assert result.new is None
        assert [d.kind for d in result.diagnostics if d.code == "NPU108"] == [FINDING] * reported
    else:  # the function stays; the formula in it, of a local name, is what it says
        assert b"def gelu(*args):\n    x = args[0]\n    return npu_unary_ops.gelu(x)" in (result.new or b"")


def test_comments_of_the_formula_are_kept() -> None:
    assert convert(
        "def act(x):\n    # see the paper\n    y = x + 0.044715 * x ** 3  # the cube\n"
        "    return 0.5 * x * (1 + tf.tanh(0.7978845608 * y))\n"
    ).endswith("def act(x):\n    # see the paper\n    # the cube\n    return npu_unary_ops.gelu(x)\n")


@pytest.mark.parametrize(
    "use",
    [
        "tf.nn.gelu(x, approximate=mode)",
        "tf.keras.activations.gelu(x)",
        "tf.keras.layers.Activation('gelu')",
        "tf.keras.layers.Activation(activation=tf.nn.gelu)",
        "tf.keras.layers.Dense(3, activation='gelu')",
    ],
)
def test_gelu_of_tensorflow_2_is_reported_with_the_one_of_npu_device(use: str) -> None:
    step = "@tf.function\ndef step(x):\n    return x\n"
    result = Converter().convert((HEAD + step + f"y = {use}\n").encode())
    (found,) = [each for each in result.diagnostics if each.code == "NPU108"]
    assert found.kind == FINDING and "npu.ops.gelu" in found.message and "up to 0.021" in found.message
