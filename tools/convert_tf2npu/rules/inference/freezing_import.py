"""Import the NPU's operators where a graph is frozen.

A graph that was trained on the NPU may have operators of the NPU. TensorFlow reads such a graph only if their module is
imported. A session that restores variables and freezes the graph stays on the host (NPU101). Code that trains and then
freezes its own graph needs no import: its sessions have the NPU configuration, whose module brings the operators.

Before::

    import tensorflow as tf
    from tensorflow.python.framework import graph_util

    saver = tf.train.import_meta_graph('model.ckpt.meta')
    with tf.Session() as sess:
        saver.restore(sess, 'model.ckpt')
        frozen = graph_util.convert_variables_to_constants(sess, sess.graph_def, ['logits'])

After::

    import tensorflow as tf
    from npu_shim.npu_init import *
    from tensorflow.python.framework import graph_util

    saver = tf.train.import_meta_graph('model.ckpt.meta')
    with tf.Session() as sess:
        saver.restore(sess, 'model.ckpt')
        frozen = graph_util.convert_variables_to_constants(sess, sess.graph_def, ['logits'])

Before::

    import tensorflow.compat.v1 as tf
    from tensorflow.python.tools import freeze_graph

    freeze_graph.freeze_graph('graph.pb', '', True, checkpoint, 'logits', 'save/restore_all', 'save/Const:0', out, True, '')

After::

    import tensorflow.compat.v1 as tf
    from npu_shim.npu_init import npu_ops
    from tensorflow.python.tools import freeze_graph

    freeze_graph.freeze_graph('graph.pb', '', True, checkpoint, 'logits', 'save/restore_all', 'save/Const:0', out, True, '')

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    with tf.Session() as sess:
        saver.restore(sess, checkpoint)
        tf.saved_model.simple_save(sess, out, {'x': x}, {'y': y})

Untouched::

    import tensorflow as tf
    from npu_bridge.estimator import npu_ops
    from tensorflow.python.tools import freeze_graph

    freeze_graph.freeze_graph('graph.pb', '', True, checkpoint, 'logits', 'save/restore_all', 'save/Const:0', out, True, '')

Untouched::

    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    model = tf.keras.models.load_model('model')
    frozen = convert_variables_to_constants_v2(tf.function(model).get_concrete_function(spec))

Untouched::

    import tensorflow as tf

    def train(sess, loss):
        sess.run(tf.train.AdamOptimizer().minimize(loss))
        return tf.graph_util.convert_variables_to_constants(sess, sess.graph_def, ['logits'])

Untouched::

    from mycompany.tools import freeze_graph

    freeze_graph.freeze_graph('graph.pb', checkpoint)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_first_call, is_in_test, trains_itself
from ...analysis.freezing import FREEZERS
from ...analysis.tensorflow_version import is_tf2_program
from ...semantics.model import Call
from ..base import Change, Context

CODE = "NPU125"
CALLS = FREEZERS
_PACKAGES = ("npu_shim", "npu_bridge", "npu_device")


def check_call(context: Context, call: Call, name: str) -> Iterator[Change]:
    is_first = is_first_call(context, call, FREEZERS, context.names.tree, on_npu=False)
    if (
        not is_first
        or is_tf2_program(context)
        or trains_itself(context)
        or is_in_test(context, call.node)
        or _imports_npu_operators(context.names.tree)
    ):
        return
    yield Change(call.node, "the NPU's operators are imported for the frozen graph", (), ("npu_ops",))


def _imports_npu_operators(tree: ast.AST) -> bool:
    """Return True if a file imports the operators: from npu_shim, or from the vendor's package."""
    return any(
        isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _PACKAGES for node in ast.walk(tree)
    )
