"""What a name is, decided by imports, aliases and scopes."""
from __future__ import annotations

import ast
import os
from typing import Optional

import pytest

from convert_tf2npu.names import Names, STAR


def name_of_last_call(text: str) -> Optional[str]:
    names = Names(ast.parse(text))
    call = max(names.calls, key=lambda c: (c.node.lineno, c.node.col_offset))
    return names.resolve(call.node.func, call.where)


RESOLVED = [
    ('import tensorflow as tf\ntf.Session()', 'tensorflow.Session'),
    ('import tensorflow\ntensorflow.Session()', 'tensorflow.Session'),
    ('import tensorflow.compat.v1 as tf\ntf.Session()', 'tensorflow.Session'),
    ('from tensorflow.compat import v1 as tf\ntf.Session()', 'tensorflow.Session'),
    ('import tensorflow as tf\ntf.compat.v1.Session()', 'tensorflow.Session'),
    ('import tensorflow as tf\ntf = tf.compat.v1\ntf.Session()', 'tensorflow.Session'),
    ('from tensorflow import Session as S\nS()', 'tensorflow.Session'),
    ('from tensorflow import estimator as est\nest.Estimator()', 'tensorflow.estimator.Estimator'),
    ('from tensorflow.python.client.session import Session\nSession()', 'tensorflow.Session'),
    ('from tensorflow.python.client import session\nsession.Session()', 'tensorflow.Session'),
    ('from tensorflow.contrib.tpu.python.tpu import tpu_estimator as t\nt.TPUEstimator()',
     'tensorflow.contrib.tpu.TPUEstimator'),
    ('from tensorflow.contrib.layers.python.layers import layers as l\nl.dropout(x)',
     'tensorflow.contrib.layers.dropout'),
    ('from tensorflow.contrib.layers.python import layers as l\nl.dropout(x)',
     'tensorflow.contrib.layers.dropout'),
    ('from tensorflow.contrib.slim.python.slim import evaluation as e\ne.evaluate_once()',
     'tensorflow.contrib.slim.evaluation.evaluate_once'),
    ('import tensorflow as tf\nSession = tf.Session\nSession()', 'tensorflow.Session'),
    ('import tensorflow as tf\nkeras = tf.keras\nkeras.Sequential()', 'tensorflow.keras.Sequential'),
    ('try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n    import tensorflow as tf\n'
     'tf.Session()', 'tensorflow.Session'),
    ('try:\n    import tensorflow as tf\nexcept ImportError:\n    tf = None\ntf.Session()',
     'tensorflow.Session'),
    ('def f():\n    import tensorflow as tf\n    return tf.Session()', 'tensorflow.Session'),
    ('import tensorflow as tf\nclass A:\n    def f(self):\n        return tf.Session()',
     'tensorflow.Session'),
    ('import tensorflow as tf\nx = [tf.Session() for i in numbers]', 'tensorflow.Session'),
    ('import tensorflow as tf\nx = lambda: tf.Session()', 'tensorflow.Session'),
    ('from tensorflow import *\nSession()', 'tensorflow.Session'),
    ('from npu_shim.npu_init import *\nnpu_config_proto()', 'npu_shim.npu_init.npu_config_proto'),
    ('from npu_bridge.npu_init import *\nnpu_config_proto()', 'npu_shim.npu_init.npu_config_proto'),
    ('from npu_shim.npu_init import *\ntf.Session()', 'tensorflow.Session'),
    ('from npu_shim.estimator.npu_unary_ops import npu_unary_ops as u\nu.gelu(x)',
     'npu_shim.npu_init.npu_unary_ops.gelu'),
    ('def f():\n    global tf\n    import tensorflow as tf\ndef g():\n    tf.Session()',
     'tensorflow.Session'),
    ('import tensorflow as tf\nif x:\n    pass\nelse:\n    tf.Session()', 'tensorflow.Session'),
    ('import tensorflow as tf\nwith a as b, c:\n    try:\n        pass\n    finally:\n        tf.Session()',
     'tensorflow.Session'),
]
UNKNOWN = [
    'import tensorflow as tf\ndef f(tf):\n    tf.Session()',
    'import tensorflow as tf\ntf = load()\ntf.Session()',
    'import tensorflow as tf\nfor tf in frameworks:\n    tf.Session()',
    'import tensorflow as tf\nwith open(p) as tf:\n    tf.Session()',
    'import tensorflow as tf\nx = [tf.Session() for tf in frameworks]',
    'import tensorflow as tf\nx = lambda tf: tf.Session()',
    'import tensorflow as tf\nclass tf:\n    pass\ntf.Session()',
    'import tensorflow as tf\nif x:\n    tf = 1\ntf.Session()',
    'try:\n    import keras\nexcept ImportError:\n    from tensorflow import keras\nkeras.Sequential()',
    'from utils import *\nSession()',
    'Session()',
    'import tensorflow as tf\ndel tf\ntf.Session()',
    'class A:\n    import tensorflow as tf\n    def f(self):\n        tf.Session()',
    'import tensorflow as tf\ntf.Session()()',
    'tf = tf.compat\ntf.Session()',
]


@pytest.mark.parametrize('text,name', RESOLVED)
def test_a_name_is_followed_to_what_it_is(text: str, name: str) -> None:
    assert name_of_last_call(text) == name


@pytest.mark.parametrize('text', UNKNOWN)
def test_what_is_not_certain_is_not_known(text: str) -> None:
    assert name_of_last_call(text) is None


def test_the_star_has_the_names_of_the_library() -> None:
    assert len(STAR) == 71 and {'tf', 'os', 'npu_ops', 'npu_config_proto', 'NPUEstimator'} <= STAR


def test_every_call_function_and_class_of_the_standard_library_is_recorded_once() -> None:
    folder = os.path.dirname(os.__file__)
    files = sorted(name for name in os.listdir(folder) if name.endswith('.py'))
    seen = 0
    for name in files[::2]:
        with open(os.path.join(folder, name), 'rb') as stream:
            tree = ast.parse(stream.read())
        names = Names(tree)
        recorded = [c.node for c in names.calls] + [f.node for f in names.functions] + [
            node for node, _ in names.classes]
        kinds = (ast.Call, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
        expected = [node for node in ast.walk(tree) if isinstance(node, kinds)]
        assert len(recorded) == len(expected) and set(recorded) == set(expected), name
        seen += len(expected)
    assert seen > 10000
