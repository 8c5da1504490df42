"""Sessions that only predict.

The compiler of the NPU prepares the graph of a session for training unless ``graph_run_mode`` is 0. A session that only
predicts is faster with 0, and with half precision for all operators if the accuracy allows it::

    import npu_shim

    config = npu_shim.session_config(config, graph_run_mode=0, precision_mode='force_fp16')
    sess = tf.Session(config=config)

Every new shape is compiled anew: feed batches of one size.

With facts of ``npu-shim observe``, if no run of the session updated a variable, NPU101 writes ``graph_run_mode=0`` in
the configuration that it gives to the session. A session that an optimizer used is not reported.

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

from typing import Iterator

from ...analysis.predicting_sessions import CODE as CODE, OPTION, SESSIONS, runs_that_predicted, seems_to_predict
from ...facts.kinds import SESSION
from ...rewrite.session_config import needs_config
from ...semantics.model import Call
from ...tf_api.name_tables import SESSION_PARAMETERS
from ..base import Context, Finding, Question

CALLS = SESSIONS


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    if not seems_to_predict(context, call):
        return
    seen = context.observed_at(CODE, SESSION, call.node)
    if seen is not None and True in (seen.all("trains") or ()):
        return
    if runs_that_predicted(context, call) is not None and needs_config(context, call, SESSION_PARAMETERS[name]):
        return  # NPU101 gives it one that predicts
    yield Finding(
        call.node,
        "this session only predicts, but its graphs are compiled for training. "
        "Make its config with npu_shim.session_config(config, {0}=0)",
        OPTION,
        asks=(Question(SESSION, call.node),),
    )
