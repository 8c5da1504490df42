"""Findings and rewrites in programs of TensorFlow 2 that do not fit a rule's page."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.project.project import Project

TF = "import tensorflow as tf\n"
STEP = TF + "@tf.function\ndef step(x, n):\n    return model(x) * n\n"
MODEL = "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
KERAS = TF + MODEL
GPUS = KERAS + "gpus = tf.config.list_physical_devices('GPU')\nmodel.fit(d)\n"


def lines(text: str, code: str, **settings: Any) -> list[int]:
    """Return the lines that a rule changes or reports."""
    result = Converter(Settings(select=(code,), **settings)).convert(text.encode())
    return [each.line for each in result.diagnostics]


def changed(text: str, code: str) -> str:
    """Return what a rule, and the one that opens the device, make of a script."""
    new = Converter(Settings(select=(code, "NPU121"))).convert(text.encode()).new
    return "" if new is None else new.decode()


@pytest.mark.parametrize(
    ("call", "count"),
    [
        ("for i in range(9):\n    step(x, i)\n", 1),
        ("for i in range(9):\n    step(x, i * 2 + 1)\n", 1),
        ("for i, x in enumerate(d):\n    step(x, n=i)\n", 1),
        ("for i in range(9):\n    step(x[i], n)\n", 0),
        ("for i in tf.range(9):\n    step(x, i)\n", 0),
        ("for i in range(9):\n    step(x, str(i))\n", 0),
        ("for i in d:\n    step(i, 1)\n", 0),
        ("for i in range(9):\n    f = lambda: step(x, i)\n", 0),
        ("step(x, 3)\n", 0),
        ("for i in tqdm(range(9)):\n    step(x, float(i))\n", 1),
        ("for i, x in tqdm.tqdm(enumerate(d)):\n    step(x, i)\n", 1),
        ("i = 0\nwhile i < 9:\n    step(x, i)\n    i += 1\n", 1),
        ("i = tf.constant(0)\nwhile i < 9:\n    step(x, i)\n    i += 1\n", 0),
        ("for i in range(9):\n    rate = 0.1 * 0.5 ** i\n    step(x, rate)\n", 1),
        ("for i in range(9):\n    rate = tf.constant(0.1 * i)\n    step(x, rate)\n", 0),
        ("for i in np.arange(9):\n    step(x, i)\n", 0),
        ("def epoch(i):\n    for x in d:\n        step(x, i)\nfor i in range(9):\n    epoch(i)\n", 1),
        ("def epoch(i):\n    for x in d:\n        step(x, i)\nepoch(3)\n", 0),
        (
            "class A:\n    def __init__(self):\n        self.n = 0\n    def run(self):\n"
            "        self.n += 1\n        step(x, self.n)\n",
            1,
        ),
        ("class A:\n    def __init__(self, n):\n        self.n = n\n    def run(self):\n        step(x, self.n)\n", 0),
    ],
)
def test_python_numbers_that_trace_again(call: str, count: int) -> None:
    assert len(lines(STEP + call, "NPU271")) == count


@pytest.mark.parametrize(
    ("made", "count"),
    [
        ("step = tf.function(update)\n", 1),
        ("step = tf.function(jit_compile=False)(update)\n", 1),
        ("step = update\nif compiled:\n    step = tf.function(update)\n", 1),
        ("step = tf.function(update, input_signature=[])\n", 0),
        ("step = update\n", 0),
        ("@functools.partial(tf.function, reduce_retracing=True)\ndef step(x, i):\n    return update(x, i)\n", 1),
        ("class A:\n    def __init__(self):\n        self.f = tf.function(update)\na = A()\nstep = a.f\n", 1),
    ],
)
def test_functions_that_tf_function_makes(made: str, count: int) -> None:
    text = TF + "import functools\ndef update(x, i):\n    v = tf.Variable(1.0)\n    return model(x) * i * v\n" + made
    assert len(lines(text + "for i in range(9):\n    step(x, i)\n", "NPU271")) == count
    assert len(lines(text, "NPU270")) == (1 if "tf.function" in made else 0)


@pytest.mark.parametrize(
    ("main", "found"),
    [
        ("import steps\nfor i in range(9):\n    steps.step(x, i)\n", ["main.py:NPU271"]),
        ("from steps import update\n@tf.function\ndef f(x):\n    return update(x)\n", ["steps.py:NPU270"]),
        ("import steps\nf = tf.function(steps.update)\n", ["steps.py:NPU270"]),
        (
            "import steps\n@tf.function\ndef f(x):\n    return strategy.run(steps.update, args=(x,))\n",
            ["steps.py:NPU270"],
        ),
        ("import steps\ndef f(x):\n    return steps.update(x)\n", []),
        (
            "import steps\n@tf.function\ndef f(x):\n    with tf.GradientTape():\n        return tf.Variable(x)\n",
            ["main.py:NPU270"],
        ),
    ],
)
def test_functions_of_other_files(main: str, found: list[str], tmp_path: pathlib.Path) -> None:
    steps = STEP + "def update(x):\n    return tf.keras.layers.Dense(3)(x)\n"
    (tmp_path / "steps.py").write_text(steps)
    (tmp_path / "main.py").write_text(("" if "steps.step" in main else TF) + main)
    project = Project([str(tmp_path / name) for name in ("main.py", "steps.py")])
    result = []
    for path in (tmp_path / "main.py", tmp_path / "steps.py"):
        each = Converter(Settings(select=("NPU270", "NPU271")), project).convert(path.read_bytes(), str(path))
        result += [f"{path.name}:{diagnostic.code}" for diagnostic in each.diagnostics]
    assert result == found


LAYER = "class L(tf.keras.layers.Layer):\n    def call(self, x):\n"
OWN = "class D(tf.keras.layers.Layer):\n    def build(self, s):\n        self.w = self.add_weight(shape=s)\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (LAYER + "        self.d = tf.keras.layers.Dense(3)\n        return self.d(x)\n", 1),
        (LAYER.replace("layers.Layer", "Model") + "        return tf.keras.layers.Dense(3)(x)\n", 1),
        (LAYER + "        return x * tf.Variable(1.0)\n", 1),
        (LAYER + "        w = self.add_weight(shape=[3])\n        return x * w\n", 1),
        (LAYER + "        if self.w is None:\n            self.w = self.add_weight(shape=[3])\n        return x\n", 0),
        (LAYER + "        return self.f(x)\n    def f(self, x):\n        return tf.keras.layers.Dense(3)(x)\n", 1),
        (LAYER + "        self.build(x)\n    def build(self, x):\n        self.add_weight(shape=[3])\n", 0),
        (LAYER + "        return tf.keras.layers.Dropout(0.1)(x)\n", 0),
        (LAYER.replace("tf.keras.layers.Layer", "Base") + "        return tf.keras.layers.Dense(3)(x)\n", 0),
        (OWN + LAYER + "        return D()(x)\n", 1),
        (OWN.replace("add_weight", "find") + LAYER + "        return D()(x)\n", 0),
        (OWN + LAYER.replace("call", "__init__") + "        self.d = D()\n", 0),
    ],
)
def test_variables_of_layers(text: str, count: int) -> None:
    assert len(lines(STEP + text, "NPU270")) == count
    assert lines(STEP + text, "NPU270", tf="1") == []


TAPE = (
    "import numpy as np\ndef update(x):\n    with tf.GradientTape() as tape:\n        loss = loss_of(model(x))\n"
    "    optimizer.apply_gradients(zip(tape.gradient(loss, w), w))\n"
)
TRACED = "import numpy as np\n@tf.function\ndef f(x):\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (TAPE + "    return bool(loss)\n", 1),
        (TAPE + "    return float(loss)\n", 0),  # a cast, once the step is a tf.function
        (TAPE + "    return np.asarray(loss)\n", 1),
        (TAPE + "    return bool(x), np.mean(x)\n", 0),
        (TAPE + "    return loss\nfor x in d:\n    print(np.mean(update(x)))\n", 0),
        (TRACED + "    return int(tf.reduce_max(x))\n", 0),
        (TRACED + "    y = 2 * tf.exp(x)\n    return np.sum(y[0])\n", 1),
        (TRACED + "    if x is None:\n        y = 1\n    else:\n        y = tf.exp(x)\n    return np.sum(y)\n", 0),
        (TRACED + "    return int(x.shape[0]) + np.prod(tf.exp(x).shape)\n", 0),
        (TRACED + "    return my.mean(tf.exp(x))\n", 0),
        (TRACED + "    return np.mean(tf.nn.top_k(x))\n", 0),
        ("loss_fn = tf.keras.losses.MeanSquaredError()\n" + TRACED + "    return bool(loss_fn(x, x) > 0)\n", 0),
        ("loss_fn = tf.keras.losses.MeanSquaredError()\n" + TRACED + "    return np.sum(loss_fn(x, x))\n", 1),
        ("model = tf.keras.Sequential()\n" + TRACED + "    return np.argmax(model(x))\n", 1),
        ("def g(x):\n    return np.mean(tf.exp(x))\n", 0),
    ],
)
def test_values_read_in_a_step(text: str, count: int) -> None:
    assert len(lines(STEP + text, "NPU272")) == count


FLIP = "tf.image.random_flip_left_right"


@pytest.mark.parametrize(
    ("flip", "train", "count"),
    [
        ("", "for x in d:\n        x = flip(x)\n        o.apply_gradients(g(x))\n", 1),
        ("", "for x in d:\n        x = mixed(x)\n        o.apply_gradients(g(x))\n", 1),
        ("@tf.function\n", "for x in d:\n        x = mixed(x)\n        o.apply_gradients(g(x))\n", 1),
        ("", "x = flip(x)\n    for x in d:\n        o.apply_gradients(g(x))\n", 0),
        ("", "o.apply_gradients(g(flip(d)))\n", 1),
        ("", "for x in d.map(flip):\n        o.apply_gradients(g(x))\n", 0),
        ("", "for x in d:\n        show(flip(x))\n", 0),
    ],
)
def test_images_augmented_in_functions_of_a_step(flip: str, train: str, count: int) -> None:
    text = f"{flip}def flip(x):\n    return {FLIP}(x)\ndef mixed(x):\n    return flip(x) + flip(x)\n"
    assert len(lines(f"{STEP}{text}def train(d):\n    {train}", "NPU280")) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (KERAS + "model.fit(d)\nd = tf.data.Dataset.range(3).save('x')\n", 1),
        (KERAS + "model.fit(d)\nmodel.export('x')\n", 1),
        (STEP + "class M(tf.keras.Model):\n    def train_step(self, d):\n        return self.compute_loss(d)\n", 1),
        (
            STEP + "class M(tf.keras.Model):\n    @tf.function\n    def compute_loss(self, d):\n        return d\n"
            "model = M()\nprint(model.compute_loss(d))\n",
            0,
        ),
        (
            STEP + "class M(tf.keras.Model):\n    def call(self, d):\n        return d\n"
            "model = M()\nprint(model.compute_loss(d))\n",
            1,
        ),
        (
            STEP + "class M(tf.keras.Model):\n    def compute_loss(self, d):\n        return d\n"
            "    def train_step(self, d):\n        return self.compute_loss(d)\n",
            0,
        ),
        (STEP + "tf.keras.optimizers.legacy.SGD(0.1)\ntf.keras.optimizers.legacy.Adam(0.1)\n", 1),
        (STEP + "if tf.__version__ > '2.10':\n    o = tf.keras.optimizers.legacy.SGD(0.1)\n", 0),
        (STEP + "try:\n    o = tf.keras.optimizers.legacy.SGD(0.1)\nexcept AttributeError:\n    o = None\n", 0),
        (STEP + "tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)\n", 0),
        (STEP + "tf.keras.losses.SparseCategoricalCrossentropy(ignore_class=0)\n", 1),
        (TF + "s = tf.Session()\no = tf.keras.optimizers.AdamW(0.1)\n", 0),
    ],
)
def test_names_that_tensorflow_26_lacks(text: str, count: int) -> None:
    assert len(lines(text, "NPU275")) == count


@pytest.mark.parametrize(
    ("test", "gone"),
    [
        ("assert gpus", True),
        ("assert len(gpus) > 0, 'no GPU'", True),
        ("assert len(gpus) >= 1", True),
        ("assert len(gpus) != 0", True),
        ("assert len(gpus) == 2", False),
        ("assert len(gpus) >= 0", False),
        ("assert not gpus", False),
    ],
)
def test_assertions_that_there_is_a_gpu(test: str, gone: bool) -> None:
    after = changed(GPUS + test + "\n", "NPU120")
    assert after and (test not in after) == gone


@pytest.mark.parametrize(
    ("test", "count"),
    [
        ("if not gpus:\n    raise SystemError('no GPU')\n", 1),
        ("import sys\nif len(gpus) == 0:\n    sys.exit(1)\n", 1),
        ("if len(gpus) < 1:\n    exit()\n", 1),
        ("if not gpus:\n    print('slow')\n", 0),
        ("if gpus:\n    raise ValueError\n", 0),
    ],
)
def test_scripts_that_end_without_a_gpu(test: str, count: int) -> None:
    assert len(lines(GPUS + test, "NPU120")) == count


POLICY = "tf.keras.mixed_precision.set_global_policy('mixed_float16')\n"
SCALED = "optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))\nmodel.fit(x)\n"


@pytest.mark.parametrize(
    ("text", "option"),
    [
        (TF + POLICY + MODEL + SCALED, True),
        (TF + "if big:\n    " + POLICY + MODEL + SCALED, False),  # the script decides
        (KERAS + POLICY + SCALED, False),  # behind the model
        (TF + POLICY.replace("mixed_float16", "mixed_bfloat16") + MODEL + SCALED, False),
        (TF + POLICY + MODEL + "model.compile('sgd', 'mse')\nmodel.fit(x)\n", True),
    ],
)
def test_policies_that_become_an_option(text: str, option: bool) -> None:
    after = changed(text, "NPU116")
    assert ("npu.global_options().precision_mode = 'allow_mix_precision'\nnpu.open().as_default()" in after) == option
    assert ("set_global_policy" in after) != option


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("w = tf.compat.v1.get_variable('w', [3])\n", 1),
        ("def model_fn(features, labels, mode):\n    return tf.compat.v1.get_variable('w', [3])\n", 0),
        ("with tf.Graph().as_default():\n    w = tf.compat.v1.get_variable('w', [3])\n", 0),
        ("if not tf.executing_eagerly():\n    w = tf.compat.v1.get_variable('w', [3])\n", 0),
        ("tf.compat.v1.enable_eager_execution()\nw = tf.compat.v1.train.AdamOptimizer()\n", 0),
        ("tf.compat.v1.logging.set_verbosity('ERROR')\ntf.compat.v1.ConfigProto()\n", 0),
    ],
)
def test_names_of_graphs_in_eager_code(text: str, count: int) -> None:
    assert len(lines(STEP + text, "NPU279")) == count
    assert lines(STEP + text, "NPU279", tf="1") == []


@pytest.mark.parametrize(
    ("others", "count"),
    [
        ({"eager.py": STEP}, 1),
        ({"eager.py": STEP, "graph.py": TF + "x = tf.placeholder(tf.float32)\n"}, 0),
        ({"both.py": STEP + "with tf.Session() as s:\n    s.run(tf.global_variables_initializer())\n"}, 0),
    ],
    ids=["eager code imports it", "graphs import it too", "a script of both versions imports it"],
)
def test_names_of_graphs_in_a_module_of_eager_code(others: dict[str, str], count: int, tmp_path: pathlib.Path) -> None:
    """The module of an optimizer for graphs may have eager code beside it."""
    module = tmp_path / "optimizer.py"
    module.write_text(TF + "def counted():\n    return tf.compat.v1.train.get_or_create_global_step()\n")
    for name, text in others.items():
        (tmp_path / name).write_text("import optimizer\n" + text)
    project = Project([str(module), *(str(tmp_path / name) for name in others)])
    found = Converter(project=project).convert(module.read_bytes(), str(module)).diagnostics
    assert [each.code for each in found].count("NPU279") == count


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("model.compile('adam', 'mse', run_eagerly=True)", "run_eagerly=False"),
        ("model.compile('adam', 'mse', run_eagerly=True)\nprint(model(x).numpy())", ""),
        ("model.compile('adam', 'mse', run_eagerly=debug)", ""),
    ],
)
def test_models_that_run_as_functions(call: str, expected: str) -> None:
    after = changed(KERAS + call + "\nmodel.fit(x)\n", "NPU122")
    assert (expected in after) if expected else ("run_eagerly=False" not in after)


@pytest.mark.parametrize(
    ("arrays", "fit", "count"),
    [
        ("(x, y), _ = tf.keras.datasets.mnist.load_data()", "", 0),  # 60000 rows, batches of 32
        ("(x, y), (u, v) = tf.keras.datasets.mnist.load_data()\nx, y = u, v", ", batch_size=32", 1),  # 10000 rows
        ("(x, y), _ = tf.keras.datasets.mnist.load_data()", ", batch_size=64", 1),
        ("(x, y), _ = tf.keras.datasets.mnist.load_data()", ", batch_size=100, validation_split=0.1", 0),
        ("(x, y), _ = tf.keras.datasets.mnist.load_data()", ", batch_size=32, validation_split=0.1", 1),
        ("(x, y), _ = tf.keras.datasets.mnist.load_data()", ", batch_size=size", 1),
        (
            "(x, y), _ = tf.keras.datasets.cifar10.load_data()\ny = tf.keras.utils.to_categorical(y, 10)",
            ", batch_size=50",
            0,
        ),
        ("(x, y), _ = tf.keras.datasets.cifar10.load_data()", "", 1),
        ("import numpy as np\nx = np.random.rand(640, 3)\ny = np.zeros((640, 1)).astype('float32')", "", 0),
        ("x, y = load()", "", 1),
        ("size = 100\n(x, y), _ = tf.keras.datasets.mnist.load_data()", ", batch_size=size", 0),
        ("x, y = load()\nx, y = x[:n], y[:n]", "", 1),
    ],
)
def test_arrays_of_a_known_length(arrays: str, fit: str, count: int) -> None:
    assert len(lines(f"{TF}{arrays}\n{MODEL}model.fit(x, y{fit})\n", "NPU248")) == count


@pytest.mark.parametrize(
    ("fit", "count"),
    [
        ("x[:133], y[:133], 33", 1),
        ("x[:133], y[:133], batch_size=33", 1),
        ("x[:132], y[:132], 33", 0),
        ("x[10:142:2], y[10:142:2], 33", 0),
        ("x[:133], y[:133, 0], 33", 1),
        ("x[:n], y[:n], 33", 0),
        ("x[:-1], y[:-1], 33", 0),
        ("x[1:], y[1:], 33", 0),
        ("x[:64], y[:64]", 0),
        ("x[:50], y[:50]", 1),
        ("x[:50], y[:50], None", 1),
        ("x[:128], y[:128], validation_split=0.25", 0),
        ("x[:133], y[0], 33", 0),
        ("u[1:], v[1:], 9", 0),
        ("u[-32:], v[-32:]", 0),
        ("u[-33:], v[-33:]", 1),
        ("u[:133], v[:133], 10", 0),  # there are 100 rows
        ("x[:rows], y[:rows], size", 1),
        ("u, v, 50, 2, 0, None, 0.25", 1),
        ("u, v, 50, 2, 0, None, 0.5", 0),
        ("u, v, 50, **given", 1),
        ("u, v, 32, 2, 0, None, 0.0, None, True, None, None, 0, 3", 0),
        ("x, [y1, y2]", 1),
        ("u, [v, v]", 1),
        ("u, [v, v], 50", 0),
        ("u, {'a': v}, 50", 0),
    ],
)
def test_slices_of_arrays(fit: str, count: int) -> None:
    arrays = "import numpy as np\nrows, size = 133, 33\nu, v = np.zeros((100, 3)), np.zeros((100, 1))\n"
    assert len(lines(f"{TF}{arrays}{MODEL}model.fit({fit})\n", "NPU248")) == count


@pytest.mark.parametrize(
    "line",
    ["d.save('x')", "tf.data.experimental.save(d, 'x')", "d = d.prefetch(2)\nd.save('x')", "model.fit(d)\nd.save('x')"],
)
def test_datasets_that_are_saved_keep_all_rows(line: str) -> None:
    text = KERAS + f"d = tf.data.Dataset.range(9).batch(4)\n{line}\nmodel.fit(e)\n"
    assert "drop_remainder" not in changed(text, "NPU109")
    assert bool(lines(text, "NPU109")) == ("model.fit(d)" in line)


def test_a_table_for_the_input_pipeline() -> None:
    table = "table = tf.lookup.StaticHashTable(init, 0)\nprint(table.lookup(tf.constant(1)))\n"
    inside = "d = tf.data.Dataset.range(3).map(lambda i: table.lookup(i))\n"
    assert lines(STEP + table + inside, "NPU240") == []
    assert lines(STEP + table + "def call(x):\n    return table.lookup(x)\n", "NPU240") == [5]
    assert lines(STEP + 2 * table, "NPU240") == [5]  # the first one stands for all


@pytest.mark.parametrize("config, found_in", [("", [3]), ("c = NPURunConfig(mix_compile_mode=True)\n", [])])
@pytest.mark.parametrize(
    "read", ["d = d.map(lambda i: table.lookup(i))\n", "def model_fn(x):\n    return table.lookup(x)\n"]
)
def test_a_table_of_tensorflow_1_is_read_where_the_npu_does_not_initialize_it(
    read: str, config: str, found_in: list[int]
) -> None:
    text = "import tensorflow as tf\nd = tf.data.TextLineDataset(files)\n"
    text += "table = tf.contrib.lookup.index_table_from_file('words.txt')\n"
    assert lines(text + read + config, "NPU240") == found_in


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("d = tf.data.Dataset.range(3).map(lambda i: tf.keras.layers.RandomFlip()(i))\n", [5]),
        ("class A:\n    def __call__(self, i):\n        return tf.keras.layers.Dense(3)(i)\n", []),
        ("d = tf.data.Dataset.range(3).map(lambda i: tf.keras.layers.Rescaling(1 / 255)(i))\n", []),
        ("d = tf.data.Dataset.range(3).map(lambda i: tf.Variable(1) * i)\n", []),  # NPU224
        ("dense = tf.keras.layers.Dense(3)\nd = tf.data.Dataset.range(3).map(lambda i: dense(i))\n", [5]),
    ],
)
def test_layers_of_the_input_pipeline(text: str, found: list[int]) -> None:
    assert lines(STEP + text, "NPU278") == found


AGENT = (
    TF
    + """class Agent:
    def __init__(self):
        self._train_fn = {}
    def train(self, x):
        return self._train_fn(x)
    def _train(self, x):
        raise NotImplementedError
"""
)
LEARNER = """from agent import Agent
import tensorflow as tf
class Learner(Agent):
    def {}(self, x):
        with tf.GradientTape() as tape:
            loss = self.model(x)
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.variables), self.variables))
"""


@pytest.mark.parametrize(
    ("base", "method", "main", "count"),
    [
        ("tf.function(self._train)", "_train", "", 0),
        ("wrapped()(self._train)", "_train", "", 0),
        ("lambda x: self._train(x)", "_train", "", 1),
        ("None", "_step", "learner.Learner()._step(x)", 1),
        ("None", "_step", "", 0),
    ],
)
def test_a_step_may_be_traced_by_the_class_whose_method_it_overrides(
    tmp_path: pathlib.Path, base: str, method: str, main: str, count: int
) -> None:
    (tmp_path / "agent.py").write_text(AGENT.format(base))
    (tmp_path / "learner.py").write_text(LEARNER.format(method))
    (tmp_path / "main.py").write_text("import learner\nlearner.Learner().train(x)\n" + main + "\n")
    project = Project([str(tmp_path / name) for name in ("agent.py", "learner.py", "main.py")])
    path = tmp_path / "learner.py"
    result = Converter(Settings(select=("NPU247",)), project).convert(path.read_bytes(), str(path))
    assert len(result.diagnostics) == count


@pytest.mark.parametrize(("user", "count"), [("main.py", 1), ("step_test.py", 0)])
def test_a_step_that_only_tests_call_is_not_reported(tmp_path: pathlib.Path, user: str, count: int) -> None:
    step = "def step(x):\n    with tf.GradientTape() as t:\n        y = m(x)\n    o.apply_gradients(t.gradient(y, v))\n"
    (tmp_path / "steps.py").write_text(TF + step)
    (tmp_path / user).write_text("from steps import step\nstep(1)\n")
    path = tmp_path / "steps.py"
    project = Project([str(path), str(tmp_path / user)])
    result = Converter(Settings(select=("NPU247",)), project).convert(path.read_bytes(), str(path))
    assert len(result.diagnostics) == count


XLA = "import os\n" + TF


@pytest.mark.parametrize(
    ("statement", "rest"),
    [
        ("os.environ['TF_XLA_FLAGS'] = '--tf_xla_cpu_global_jit --tf_xla_auto_jit=2'", ""),
        ("os.environ.setdefault('TF_XLA_FLAGS', '--tf_xla_auto_jit=fusible')", ""),
        ("if fast:\n    os.environ['TF_XLA_FLAGS'] = '--tf_xla_auto_jit=2'", "if fast:\n    pass\n"),
    ],
)
def test_the_variable_that_turns_xla_on_is_removed(statement: str, rest: str) -> None:
    assert changed(XLA + statement + "\n", "NPU112") == XLA + rest


@pytest.mark.parametrize(
    ("statement", "count"),
    [
        ("os.environ['TF_XLA_FLAGS'] = '--tf_xla_auto_jit=2 ' + more", 1),
        ("env = dict(os.environ, TF_XLA_FLAGS='--tf_xla_auto_jit=2')", 1),
        ("os.environ['TF_XLA_FLAGS'] = '--tf_xla_enable_xla_devices'", 0),
        ("os.environ['TF_XLA_FLAGS'] = '--tf_xla_auto_jit=0'", 0),
        ("parser.add_argument('--xla', help='as TF_XLA_FLAGS=--tf_xla_auto_jit=2')", 0),
    ],
)
def test_other_values_of_the_variable_of_xla(statement: str, count: int) -> None:
    assert changed(XLA + statement + "\n", "NPU112") == ""
    assert len(lines(XLA + statement + "\n", "NPU112")) == count


SLICED = TF + "@tf.function\ndef step(x):\n    return model(x)\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("for k in range(int(np.ceil(len(x) / n))):\n    step(x[k * n:(k + 1) * n])\n", 1),
        ("m = len(x) // n\nfor k in range(m + 1):\n    step(x[k * n:k * n + n])\n", 1),
        ("m = len(x) // n\nfor k in range(m):\n    step(x[k * n:(k + 1) * n])\n", 0),
        ("for k in range(m + 1):\n    step(x[k * n:(k + 1) * n])\n", 0),
        ("for k in range(ceil(m / n)):\n    step(x[k * n:k * n + size])\n", 0),
        ("i = 0\nwhile i < len(x):\n    step(x[i:i + n])\n    i += n\n", 1),
        ("i = 0\nwhile i < len(x) - n:\n    step(x[i:i + n])\n    i += n\n", 0),
        ("i = 0\nwhile i < len(x):\n    step(x[i:i + n])\n    i += 1\n", 0),
        ("for i in range(0, len(x), n):\n    rows = order[i:i + n]\n    step(x[rows])\n", 1),
        ("for i in range(0, len(x), n):\n    end = i + n\n    rows = order[i:end]\n    y = x[rows]\n    step(y)\n", 1),
        ("for i in range(9):\n    rows = np.random.choice(len(x), n)\n    step(x[rows])\n", 0),
        (
            "def batches(x, n):\n    for i in range(0, len(x), n):\n        yield x[i:i + n], i\n"
            "for e in range(3):\n    for y, _ in batches(x, 64):\n        step(y)\n",
            1,
        ),
        (
            "def batches(x, n):\n    for i in range(0, len(x) - n + 1, n):\n        yield x[i:i + n]\n"
            "for i, y in enumerate(batches(x, 64)):\n    step(y)\n",
            0,
        ),
        ("def batches(x):\n    for i in range(9):\n        yield x[i]\nfor y in batches(x):\n    step(y)\n", 0),
    ],
)
def test_loops_with_a_partial_slice(text: str, count: int) -> None:
    assert len(lines(SLICED + text, "NPU276")) == count


@pytest.mark.parametrize(
    ("made", "fit", "count"),
    [
        ("g = ImageDataGenerator().flow_from_directory('d')", "fit(g, steps_per_epoch=9)", 1),
        ("a = ImageDataGenerator()", "fit(a.flow(x, y, batch_size=9), epochs=2)", 1),
        ("g = ImageDataGenerator().flow_from_dataframe(d)", "fit_generator(g)", 1),
        ("g = ImageDataGenerator().flow_from_directory('d')", "fit((b for b in g if len(b[0]) == 9))", 0),
        ("g = other().flow(x)", "fit(g)", 0),
        ("g = ImageDataGenerator().flow_from_directory('d')", "evaluate(g)", 0),
        ("x = tf.zeros([64, 3])\ny = tf.random.uniform((64, 1))", "fit(x, y, batch_size=16)", 0),
        ("x = tf.zeros([64, 3])\ny = tf.random.uniform((64, 1))", "fit(x, y, batch_size=10)", 1),
    ],
)
def test_batches_of_generators_of_images(made: str, fit: str, count: int) -> None:
    image = "from tensorflow.keras.preprocessing.image import ImageDataGenerator\n"
    assert len(lines(f"{image}{KERAS}{made}\nmodel.{fit}\n", "NPU248")) == count


UPDATE = "def update(x):\n    with tf.GradientTape() as t:\n        y = w * x\n    o.apply_gradients([(t.gradient(y, w), w)])\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (
            "for i in range(9):\n    with tf.GradientTape() as t:\n        y = w * 2\n    w.assign_sub(t.gradient(y, w))\n",
            1,
        ),
        ("for i in range(9):\n    with tf.GradientTape() as t:\n        y = w * 2\n    show(t.gradient(y, w))\n", 0),
        ("o = tf.keras.optimizers.SGD(0.1)\nfor i in range(9):\n    o.minimize(lambda: w * 2, [w])\n", 1),
        ("o = tf.keras.optimizers.SGD(0.1)\ndef loss():\n    return w\nfor i in d:\n    o.minimize(loss, [w])\n", 1),
        ("o = tf.keras.optimizers.SGD(0.1)\n@tf.function\ndef f():\n    o.minimize(lambda: w * 2, [w])\n", 0),
        ("for i in range(9):\n    scipy.minimize(lambda: w * 2, [w])\n", 0),
        (UPDATE + "def dist(x):\n    strategy.run(update, args=(x,))\nfor x in d:\n    dist(x)\n", 1),
        (UPDATE + "@tf.function\ndef dist(x):\n    strategy.run(update, args=(x,))\nfor x in d:\n    dist(x)\n", 0),
        (UPDATE + "def dist(x):\n    other(update, x)\nfor x in d:\n    dist(x)\n", 0),
    ],
)
def test_steps_that_run_operation_by_operation(text: str, count: int) -> None:
    assert len(lines(STEP + "w = tf.Variable(1.0)\n" + text, "NPU247")) == count


def test_keras_of_two_imports_is_that_of_tensorflow() -> None:
    script = "from tensorflow import keras\nimport keras\n\ndef build():\n    v = keras.Variable(1.0)\n"
    script += "    return keras.Sequential([keras.layers.Dense(1)])\nmodel = build()\nmodel.fit(x, y)\n"
    new = Converter(Settings(select=("NPU123", "NPU124"))).convert(script.encode()).new
    assert new is not None and b"\nfrom tensorflow import keras\n" in new and b"v = backports.Variable(1.0)" in new
