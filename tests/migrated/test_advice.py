"""The advice of findings runs as it is written: each call in it exists with these arguments, and scripts follow it."""

from __future__ import annotations

import ast
import inspect
import os
import pathlib
import re
import textwrap
from contextlib import nullcontext
from typing import Any, Callable, Iterator

import pytest
import tensorflow as tf
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.results import FINDING
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.rules.registry import Registry

import npu_shim

v1 = tf.compat.v1
IS_TF1 = tf.__version__.startswith("1.")
_PATH = re.compile(
    r"(?<![\w.'\"])((?:tf|npu_shim|hccl_ops|keras_to_npu|(?:npu|set|get|close)_\w+|NPU[A-Z]\w+)(?:\.\w+)*)"
)


def messages() -> Iterator[tuple[str, str]]:
    """Yield the code and the message of each finding on the examples of the rules."""
    for rule in Registry().rules:
        for example in re.split(r"\n(?:Reported|Untouched)::\n", rule.doc)[1:]:
            text = textwrap.dedent(re.split(r"\n(?=\S)", example.strip("\n"))[0])
            for each in Converter(Settings(**rule.needed_settings)).convert(text.encode()).diagnostics:
                if each.kind == FINDING:
                    yield each.code, each.message


MESSAGES = sorted(set(messages()))


def names() -> dict[str, Any]:
    found: dict[str, Any] = {"npu_shim": npu_shim}
    exec("from npu_shim.npu_init import *", found)
    return {**found, "tf": tf}


def arguments(text: str) -> str:
    """Return the text of the parentheses at the beginning of a text; nothing if there are none."""
    depth = 0
    for index, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if not depth:
            return text[: index + 1] if char == ")" else ""
    return ""


def test_the_examples_have_findings() -> None:
    assert len(MESSAGES) > 90 and len({code for code, _ in MESSAGES}) > 50


@pytest.mark.parametrize("code, message", MESSAGES, ids=[f"{i} {code}" for i, (code, _) in enumerate(MESSAGES)])
def test_the_names_in_the_advice_exist_and_take_these_arguments(code: str, message: str) -> None:
    problem, _, advice = message.partition(". ")
    for found in _PATH.finditer(advice):
        path = found.group(1)
        if (
            path in ("npu_shim", "npu_keras_sess", "set_policy", "set_global_policy")
            or "import " + path in advice
            or "from " + path in advice
            or path.startswith("tf.contrib")
        ):
            continue
        try:
            value = eval(path, names())
        except AttributeError:
            assert path.startswith("tf.") and not (IS_TF1 and hasattr(v1, path[3:])), path
            continue  # of another version of TensorFlow
        given = arguments(advice[found.end() :])
        if path.startswith("tf.") or not given:
            continue
        call = ast.parse("f" + given, mode="eval").body
        assert isinstance(call, ast.Call)
        open_ended = any(ast.dump(each) == ast.dump(ast.parse("...", mode="eval").body) for each in call.args)
        positional = [] if open_ended else call.args
        keywords = {str(keyword.arg): None for keyword in call.keywords}
        signature = inspect.signature(value)
        (signature.bind_partial if open_ended else signature.bind)(*positional, **keywords)


def after(text: str, line: int, fix: str) -> str:
    """Return a script with a statement after a line."""
    lines = text.splitlines()
    indent = lines[line - 1][: len(lines[line - 1]) - len(lines[line - 1].lstrip())]
    return "\n".join([*lines[:line], indent + fix, *lines[line:], ""])


def instead(text: str, line: int, fix: str) -> str:
    """Return a script with a statement in place of a line."""
    lines = text.splitlines()
    indent = lines[line - 1][: len(lines[line - 1]) - len(lines[line - 1].lstrip())]
    return "\n".join([*lines[: line - 1], indent + fix, *lines[line:], ""])


def call(old: str) -> Callable[[str, int, str], str]:
    """Return a function that puts an expression in place of another one."""

    def follow(text: str, line: int, fix: str) -> str:
        assert old in text.splitlines()[line - 1]
        return text.replace(old, fix)

    return follow


VARIABLE = 'w = v1.get_variable("w", [], initializer=v1.zeros_initializer())\n'
TRAIN = VARIABLE + "train_op = v1.train.GradientDescentOptimizer(0.1).minimize((w - 1) * (w - 1))\n"
RUN = "    sess.run(v1.global_variables_initializer())\n    print(sess.run({}))\n"
X = "x = tf.constant([[3.0, 1.0, 3.0], [2.0, 2.0, 0.0]])\n"
SHOW = "with v1.Session() as sess:\n    print(sess.run(y))\n"
# Code, options, script, the part of the message to write, and how it is written.
CASES: dict[str, tuple[str, str, str, str, Callable[[str, int, str], str]]] = {
    "broadcast in a session": (
        "NPU251", "tf_strategy", TRAIN + "with v1.Session() as sess:\n" + RUN.format("train_op"), r"write (.+)", after,
    ),
    "broadcast after init.run()": (
        "NPU251",
        "tf_strategy",
        TRAIN + "with v1.Session() as sess:\n    v1.global_variables_initializer().run()\n    sess.run(train_op)\n",
        r"write (.+)",
        after,
    ),
    "save on one rank": (
        "NPU253",
        "tf_strategy",
        TRAIN + "saver = v1.train.Saver()\nwith v1.Session() as sess:\n"
        + RUN.format("train_op") + "    saver.save(sess, 'ckpt')\n",
        r"Write (.+)",
        instead,
    ),
    "shard": (
        "NPU252",
        "tf_strategy",
        "def train_input_fn():\n    dataset = tf.data.Dataset.range(8).shuffle(4, seed=1)\n"
        "    return dataset.repeat().batch(2)\n"
        "y = v1.data.make_one_shot_iterator(train_input_fn()).get_next()\n" + SHOW,
        r"then write (.+)",
        after,
    ),
    "pad the last batch": (
        "NPU109",
        "",
        "def eval_input_fn():\n    data = tf.data.Dataset.range(7).batch(4)\n    return data\n"
        "y = v1.data.make_one_shot_iterator(eval_input_fn()).get_next()\n" + SHOW,
        r"Use (.+) and its mask",
        call("tf.data.Dataset.range(7).batch(4)"),
    ),
    "positions of a mask": (
        "NPU230", "", X + "y = tf.where(x > 1)\n" + SHOW, r" or (npu_shim.+)", lambda text, line, fix: text.replace(
            "tf.where(x > 1)", fix.replace("condition", "x > 1").replace("MOST", "6") + "[0]"
        ),
    ),
    "a weighted mean": (
        "NPU231",
        "",
        X + "mask = x > 1\ny = tf.reduce_mean(tf.boolean_mask(x, mask))\n" + SHOW,
        r"Write (.+)",
        lambda text, line, fix: instead(text, line, fix.replace(" and ", "; y = ")),
    ),
    "unique": (
        "NPU232",
        "",
        "x = tf.constant([3, 1, 3])\ny, index = tf.unique(x)\n" + SHOW,
        r"Write values, (.+), or",
        lambda text, line, fix: instead(text, line, "y, " + fix),
    ),
    "a mask of the largest": (
        "NPU235",
        "",
        X + "k = v1.placeholder_with_default(2, [])\ny = tf.nn.top_k(x, k)\n" + SHOW,
        r"Write mask = (.+), or",
        lambda text, line, fix: instead(text, line, "y = " + fix),
    ),
    "batches of arrays": (
        "NPU245",
        "",
        "images = np.zeros([7, 2], np.float32)\nx = v1.placeholder(tf.float32, [3, 2])\ny = tf.reduce_sum(x, 1)\n"
        "with v1.Session() as sess:\n    for i in range(0, len(images), 3):\n"
        "        print(sess.run(y, {x: images[i:i + 3]}))\n",
        r"Write (.+) and keep",
        lambda text, line, fix: "\n".join(
            fix.join([" " * 4, ""]) if "range(0" in each else each.replace("{x: images[i:i + 3]})", "feed)[:real]")
            for each in text.splitlines()
        ),
    ),
    "gelu": (
        "NPU108",
        "",
        X + "def gelu(x):\n    return 0.5 * x * (1.0 + tf.math.erf(x / tf.sqrt(2.0)))\ny = gelu(x)\n" + SHOW,
        r"Use (\S+)",
        lambda text, line, fix: text.replace("0.5 * x * (1.0 + tf.math.erf(x / tf.sqrt(2.0)))", f"{fix}(x)"),
    ),
    "a Keras session": (
        "NPU105",
        "",
        "v1.disable_eager_execution()\n"
        "model = MODELS['dense']()\nmodel.compile(optimizer='sgd', loss='mse')\nlayer = tf.keras.layers.Dense(1)\n"
        "model.fit(np.zeros([4, 2]), np.zeros([4, 1]), verbose=0)\n",
        r"write (.+) before the model and",
        lambda text, line, fix: text.replace("model = ", fix + "\nmodel = "),
    ),
    "mixed precision of a session": (
        "NPU116",
        "",
        "if MODELS:\n"
        "    optimizer = v1.train.experimental.enable_mixed_precision_graph_rewrite(v1.train.AdamOptimizer())\n"
        "y = tf.constant(1)\n" + SHOW,
        r"pass (.+) to npu_config_proto",
        lambda text, line, fix: instead(text, line, "    pass").replace(
            "v1.Session()", f"v1.Session(config=npu_config_proto({fix}))"
        ),
    ),
    "mixed precision of Keras": (
        "NPU116",
        "",
        "v1.disable_eager_execution()\n"
        "v1.keras.mixed_precision.experimental.set_policy('mixed_float16')\nmodel = MODELS['dense']()\n"
        "model.compile('sgd', 'mse')\nmodel.fit(np.zeros([4, 2]), np.zeros([4, 1]), verbose=0)\n",
        r"and write (.+)",
        instead,
    ),
}  # fmt: skip
KERAS = {"a Keras session", "mixed precision of Keras"}


@pytest.mark.parametrize("case", CASES)
def test_a_script_that_follows_the_advice_runs_and_has_no_such_finding(
    case: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, distributed, script, pattern, follow = CASES[case]
    head = (
        "import numpy as np\nimport tensorflow as tf\nimport tensorflow.compat.v1 as v1\n"
        "import npu_shim\nfrom npu_shim.npu_init import *\n"
    )
    converter = Converter(Settings(select=(code,), distributed=distributed))
    findings = [each for each in converter.convert((head + script).encode()).diagnostics if each.kind == FINDING]
    assert findings, case
    fix = re.search(pattern, findings[0].message)
    assert fix, findings[0].message
    text = follow(head + script, findings[0].line, fix.group(1))
    again = converter.convert(text.encode()).diagnostics
    assert not [each for each in again if each.kind == FINDING], text
    monkeypatch.chdir(tmp_path)
    has_sessions = case not in KERAS or IS_TF1 or int(tf.__version__.split(".")[1]) < 16
    with v1.Graph().as_default(), nullcontext() if has_sessions else pytest.raises(RuntimeError, match="Keras"):
        exec(compile(text, case, "exec"), {**names(), "MODELS": {"dense": _model}, "__name__": "__main__"})
    if case == "save on one rank":
        assert os.path.exists("ckpt.index")


def _model() -> Any:
    return tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
