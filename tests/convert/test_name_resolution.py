"""Name resolution: imports, aliases and scopes."""

from __future__ import annotations

import ast
import os

import pytest
from convert_tf2npu.project.project import Project
from convert_tf2npu.semantics.resolver import Resolver
from convert_tf2npu.tf_api.npu_init_exports import STAR


def name_of_last_call(text: str) -> str | None:
    names = Resolver(ast.parse(text), Project())
    call = max(names.calls, key=lambda c: (c.node.lineno, c.node.col_offset))
    return names.resolve(call.node.func, call.where)


RESOLVED = [
    ("import tensorflow as tf\ntf.Session()", "tensorflow.Session"),
    ("import tensorflow\ntensorflow.Session()", "tensorflow.Session"),
    ("import tensorflow.compat.v1 as tf\ntf.Session()", "tensorflow.Session"),
    ("from tensorflow.compat import v1 as tf\ntf.Session()", "tensorflow.Session"),
    ("import tensorflow as tf\ntf.compat.v1.Session()", "tensorflow.Session"),
    ("import tensorflow as tf\ntf = tf.compat.v1\ntf.Session()", "tensorflow.Session"),
    ("import tensorflow.compat.v1 as tf\ntf.compat.v1.Session()", "tensorflow.Session"),
    ("from tensorflow import Session as S\nS()", "tensorflow.Session"),
    ("import keras\nkeras.layers.Dense()", "tensorflow.keras.layers.Dense"),
    ("import keras as k\nk.models.Sequential()", "tensorflow.keras.Sequential"),
    ("from keras import *\nSequential()", "tensorflow.keras.Sequential"),
    ("from keras.layers.core import Dense\nDense()", "tensorflow.keras.layers.Dense"),
    ("import tf_keras as keras\nkeras.Model()", "tensorflow.keras.Model"),
    (
        "try:\n    import keras\nexcept ImportError:\n    from tensorflow import keras\nkeras.Sequential()",
        "tensorflow.keras.Sequential",
    ),
    ("from tensorflow import estimator as est\nest.Estimator()", "tensorflow.estimator.Estimator"),
    ("from tensorflow.python.client.session import Session\nSession()", "tensorflow.Session"),
    ("from tensorflow.python.client import session\nsession.Session()", "tensorflow.Session"),
    (
        "from tensorflow.contrib.tpu.python.tpu import tpu_estimator as t\nt.TPUEstimator()",
        "tensorflow.contrib.tpu.TPUEstimator",
    ),
    (
        "from tensorflow.contrib.layers.python.layers import layers as l\nl.dropout(x)",
        "tensorflow.contrib.layers.dropout",
    ),
    ("from tensorflow.contrib.layers.python import layers as l\nl.dropout(x)", "tensorflow.contrib.layers.dropout"),
    (
        "from tensorflow.contrib.slim.python.slim import evaluation as e\ne.evaluate_once()",
        "tensorflow.contrib.slim.evaluation.evaluate_once",
    ),
    ("import tensorflow as tf\nSession = tf.Session\nSession()", "tensorflow.Session"),
    ("import tensorflow as tf\nkeras = tf.keras\nkeras.Sequential()", "tensorflow.keras.Sequential"),
    (
        "try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n    import tensorflow as tf\ntf.Session()",
        "tensorflow.Session",
    ),
    ("try:\n    import tensorflow as tf\nexcept ImportError:\n    tf = None\ntf.Session()", "tensorflow.Session"),
    (
        "try:\n    from google3.third_party.tensorflow.python.estimator import estimator as e\nexcept ImportError:\n"
        "    from tensorflow.python.estimator import estimator as e\ne.Estimator()",
        "tensorflow.estimator.Estimator",
    ),
    ("def f():\n    import tensorflow as tf\n    return tf.Session()", "tensorflow.Session"),
    ("import tensorflow as tf\nclass A:\n    def f(self):\n        return tf.Session()", "tensorflow.Session"),
    ("import tensorflow as tf\nx = [tf.Session() for i in numbers]", "tensorflow.Session"),
    ("import tensorflow as tf\nx = lambda: tf.Session()", "tensorflow.Session"),
    ("from tensorflow import *\nSession()", "tensorflow.Session"),
    ("from npu_shim.npu_init import *\nnpu_config_proto()", "npu_shim.npu_init.npu_config_proto"),
    ("from npu_bridge.npu_init import *\nnpu_config_proto()", "npu_shim.npu_init.npu_config_proto"),
    ("from npu_shim.npu_init import *\ntf.Session()", "tensorflow.Session"),
    (
        "from npu_shim.estimator.npu_unary_ops import npu_unary_ops as u\nu.gelu(x)",
        "npu_shim.npu_init.npu_unary_ops.gelu",
    ),
    ("def f():\n    global tf\n    import tensorflow as tf\ndef g():\n    tf.Session()", "tensorflow.Session"),
    ("import tensorflow as tf\nif x:\n    pass\nelse:\n    tf.Session()", "tensorflow.Session"),
    (
        "import tensorflow as tf\nwith a as b, c:\n    try:\n        pass\n    finally:\n        tf.Session()",
        "tensorflow.Session",
    ),
]
# The same, of names that the script moves around itself.
MOVED = [
    (
        "import tensorflow as tf\nclass A:\n    def __init__(self):\n        self.tf = tf\n    def f(self):\n"
        "        self.tf.Session()",
        "tensorflow.Session",
    ),
    (
        "import tensorflow as tf\nclass A:\n    def f(self):\n        self.keras.layers.Dropout(0.1)\n"
        "    def __init__(self):\n        self.keras = tf.keras",
        "tensorflow.keras.layers.Dropout",
    ),
    (
        "import tensorflow as tf\nclass A:\n    tf = tf\n    def f(self):\n        self.tf.Session()",
        "tensorflow.Session",
    ),
    ("import tensorflow as tf\nclass A:\n    make = tf.Session\nA.make()", "tensorflow.Session"),
    (
        "import tensorflow as tf\nclass A:\n    make = tf.Session\n    @classmethod\n    def f(cls):\n"
        "        cls.make()",
        "tensorflow.Session",
    ),
    (
        "import tensorflow as tf\nclass A:\n    def __init__(self):\n        self.tf = tf\nclass B(A):\n"
        "    def f(self):\n        self.tf.Session()",
        "tensorflow.Session",
    ),
    (
        "import tensorflow as tf\nclass A:\n    def __init__(self):\n        self.s = None\n"
        "        self.s = tf.Session\n    def f(self):\n        self.s()",
        "tensorflow.Session",
    ),
    ("import tensorflow as t, numpy as n\ntf, np = t, n\ntf.Session()", "tensorflow.Session"),
    ("import tensorflow as t\n[tf, (a, b)] = t, (1, 2)\ntf.Session()", "tensorflow.Session"),
    ("import tensorflow\ntf = tf1 = tensorflow\ntf.Session()", "tensorflow.Session"),
    ('import importlib\ntf = importlib.import_module("tensorflow.compat.v1")\ntf.Session()', "tensorflow.Session"),
    ('from importlib import import_module as get\nget("tensorflow").Session()', "tensorflow.Session"),
    ('tf = __import__("tensorflow")\ntf.Session()', "tensorflow.Session"),
    ('import sys\ntf = sys.modules["tensorflow"]\ntf.Session()', "tensorflow.Session"),
    (
        "from tensorflow.python.util.lazy_loader import LazyLoader\n"
        'contrib = LazyLoader("contrib", globals(), "tensorflow.contrib")\ncontrib.slim.dropout(x)',
        "tensorflow.contrib.layers.dropout",
    ),
    (
        "def try_import():\n    try:\n        import tensorflow as tf\n        return tf\n"
        "    except ImportError:\n        return None\ntf = try_import()\ntf.Session()",
        "tensorflow.Session",
    ),
    (
        'def modules():\n    import tensorflow as tf\n    if tf.__version__ > "2":\n'
        "        return tf.compat.v1, tf, 2\n    return tf, tf, 1\ntf1, tf, v = modules()\ntf1.Session()",
        "tensorflow.Session",
    ),
    (
        "def tpu():\n    check()\n    from tensorflow.contrib import tpu as t\n    return t\ntpu().TPUEstimator()",
        "tensorflow.contrib.tpu.TPUEstimator",
    ),
    (
        "import functools\n@functools.lru_cache(None)\ndef get():\n    import tensorflow\n"
        "    return tensorflow\nget().Session()",
        "tensorflow.Session",
    ),
    ('import tensorflow as tf\nif hasattr(tf, "compat"):\n    tf = tf.compat.v1\ntf.Session()', "tensorflow.Session"),
    ('import tensorflow as tf\nv1 = tf.compat.v1 if hasattr(tf, "compat") else tf\nv1.Session()', "tensorflow.Session"),
    ('import tensorflow as tf\ngetattr(tf, "Session")()', "tensorflow.Session"),
    (
        "try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n    try:\n"
        "        import tensorflow as tf\n    except ImportError:\n        tf = None\ntf.Session()",
        "tensorflow.Session",
    ),
    ("if gpu:\n    import tensorflow as tf\nelse:\n    import tensorflow as tf\ntf.Session()", "tensorflow.Session"),
    ("import tensorflow as tf\ntf.Session = tf.compat.v1.Session\ntf.Session()", "tensorflow.Session"),
]
UNKNOWN = [
    "import tensorflow as tf\nimport other\ndef f():\n    m = other\n    def g():\n        nonlocal m\n"
    "        m = tf\n    g()\n    def h():\n        m.Session()",
    "import tensorflow as tf\nimport other\nm = tf\nfor i in x:\n    m.Session()\n    m = other",
    "import tensorflow as tf\ntf.Session = Recorder\ntf.Session()",
    "import tensorflow as tf\nimport functools\ntf.Session = functools.partial(tf.Session, graph=g)\ntf.Session()",
    "import tensorflow as tf\nclass A:\n    def __init__(self, tf):\n        self.tf = tf\n    def f(self):\n"
    "        self.tf.Session()",
    "import tensorflow as tf\nclass A:\n    def f(self):\n        self.tf = tf\n        self.tf = load()\n"
    "        self.tf.Session()",
    "import tensorflow as tf\nclass A:\n    def f(self):\n        self.tf = tf\nclass B:\n    def f(self):\n"
    "        self.tf.Session()",
    "import tensorflow as tf\nclass A:\n    @staticmethod\n    def f(x):\n        x.tf = tf\n        x.tf.Session()",
    "import tensorflow as tf\ntf, np = load()\ntf.Session()",
    "import tensorflow as t\n(tf, *rest) = t, 1, 2\ntf.Session()",
    "import importlib\ntf = importlib.import_module(name)\ntf.Session()",
    "def get(x):\n    if x:\n        return load()\n    import tensorflow\n    return tensorflow\nget(1).Session()",
    "@wrapped\ndef get():\n    import tensorflow\n    return tensorflow\nget().Session()",
    "def get():\n    import tensorflow\n    return tensorflow, 1\nget().Session()",
    "def get():\n    return get()\nget().Session()",
    "def f(x):\n    for n in numbers:\n        x = x[n]\n        x, i = x.top(n)\n        y, j = y.next(y)\n    x.Session()",
    "import tensorflow as tf\ngetattr(tf, name)()",
    "import tensorflow as tf\ndef f(tf):\n    tf.Session()",
    "import tensorflow as tf\ntf = load()\ntf.Session()",
    "import tensorflow as tf\nfor tf in frameworks:\n    tf.Session()",
    "import tensorflow as tf\nwith open(p) as tf:\n    tf.Session()",
    "import tensorflow as tf\nx = [tf.Session() for tf in frameworks]",
    "import tensorflow as tf\nx = lambda tf: tf.Session()",
    "import tensorflow as tf\nclass tf:\n    pass\ntf.Session()",
    "import tensorflow as tf\nif x:\n    tf = 1\ntf.Session()",
    "from utils import *\nSession()",
    "Session()",
    "import tensorflow as tf\ndel tf\ntf.Session()",
    "class A:\n    import tensorflow as tf\n    def f(self):\n        tf.Session()",
    "import tensorflow as tf\ntf.Session()()",
    "tf = tf.compat\ntf.Session()",
]


@pytest.mark.parametrize("text,name", RESOLVED + MOVED)
def test_a_name_is_followed_to_what_it_is(text: str, name: str) -> None:
    assert name_of_last_call(text) == name


@pytest.mark.parametrize("text", UNKNOWN)
def test_an_uncertain_name_is_unknown(text: str) -> None:
    assert name_of_last_call(text) is None


def test_the_star_has_the_names_of_the_library() -> None:
    assert len(STAR) == 71 and {"tf", "os", "npu_ops", "npu_config_proto", "NPUEstimator"} <= STAR


def test_every_call_function_and_class_of_the_standard_library_is_recorded_once() -> None:
    folder = os.path.dirname(os.__file__)
    files = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
    seen = 0
    for name in files[::2]:
        with open(os.path.join(folder, name), "rb") as stream:
            tree = ast.parse(stream.read())
        names = Resolver(tree, Project())
        recorded = (
            [c.node for c in names.calls] + [f.node for f in names.functions] + [node for node, _ in names.classes]
        )
        kinds = (ast.Call, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
        expected = [node for node in ast.walk(tree) if isinstance(node, kinds)]
        assert len(recorded) == len(expected) and set(recorded) == set(expected), name
        seen += len(expected)
    assert seen > 10000
