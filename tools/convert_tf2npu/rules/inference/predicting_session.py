"""Sessions that only predict.

The compiler of the NPU prepares the graph of a session for training unless ``graph_run_mode`` is 0. A session that only
predicts is faster with 0, and with half precision for all operators if the accuracy allows it::

    import npu_shim

    config = npu_shim.session_config(config, graph_run_mode=0, precision_mode='force_fp16')
    sess = tf.Session(config=config)

Every new shape is compiled anew: feed batches of one size.

Reported::

    import tensorflow as tf
    from npu_shim.npu_init import *

    graph_def = tf.GraphDef()
    graph_def.ParseFromString(tf.gfile.GFile('frozen.pb', 'rb').read())
    tf.import_graph_def(graph_def, name='')
    with tf.Session(config=npu_config_proto()) as sess:
        print(sess.run('logits:0', {'images:0': images}))

Reported::

    import tensorflow as tf
    from npu_shim.npu_init import *

    with tf.Session(config=npu_config_proto()) as sess:
        tf.train.Saver().restore(sess, checkpoint)
        scores = sess.run(logits, {images: batch})

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    with tf.Session(config=npu_config_proto()) as sess:
        tf.train.Saver().restore(sess, checkpoint)
        sess.run(train_op)

Untouched::

    import npu_shim
    import tensorflow as tf
    from npu_shim.npu_init import *

    with tf.Session(config=npu_shim.session_config(graph_run_mode=0)) as sess:
        tf.train.Saver().restore(sess, checkpoint)
        scores = sess.run(logits, {images: batch})

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    with tf.Session(config=npu_config_proto()) as sess:
        print(sess.run(tf.constant(1)))
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import in_test, never_trains
from ...analysis.host_work import is_on_host
from ...analysis.tensorflow_version import is_idle
from ...semantics.model import Call
from ...syntax.expressions import last_name, last_part
from ..base import Context, Finding, Result

CODE = "NPU283"
CALLS = frozenset({"tensorflow.Session", "tensorflow.InteractiveSession"})
_GRAPHS = frozenset(
    """tensorflow.import_graph_def tensorflow.graph_util.import_graph_def tensorflow.train.import_meta_graph
tensorflow.saved_model.load tensorflow.saved_model.loader.load""".split()
)
_SAVERS = frozenset({"tensorflow.train.Saver"})
_OPTION = "graph_run_mode"


def check_call(context: Context, call: Call, name: str) -> Iterator[Result]:
    if (
        _OPTION in context.source.text
        or not context.once(_runs_loaded_model)
        or not never_trains(context)
        or in_test(context, call.node)
        or is_on_host(context, call.node)
        or is_idle(context, call.node)
    ):
        return
    yield Finding(
        call.node,
        "this session only predicts, but its graphs are compiled for training. "
        "Make its config with npu_shim.session_config(config, {0}=0)",
        _OPTION,
    )


def _runs_loaded_model(context: Context) -> bool:
    """Return True if a file loads a trained model and runs it."""
    calls = context.names.calls
    words = {call.node.func.attr for call in calls if isinstance(call.node.func, ast.Attribute)}
    wanted = _GRAPHS | _SAVERS if "restore" in words else _GRAPHS
    last = {last_part(name) for name in wanted}
    return not words.isdisjoint(("run", "eval")) and any(
        last_name(c.node.func) in last and context.resolve(c.node.func, c.where) in wanted for c in calls
    )
