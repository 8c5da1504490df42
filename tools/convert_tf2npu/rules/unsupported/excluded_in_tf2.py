"""Calls unsupported on TensorFlow 2.6 only (with ``--compat-v1``).

The vendor's support list for TensorFlow 1.15 marks these calls as supported. The list for 2.6 excludes them, also
under ``tf.compat.v1``. The rule reports each name once for each file.

Reported::

    import tensorflow as tf

    y = tf.nn.depthwise_conv2d(x, kernel, [1, 1, 1, 1], 'SAME')

Untouched::

    import tensorflow.compat.v1 as tf

    y = tf.nn.conv2d(x, kernel, [1, 1, 1, 1], 'SAME')
    z = tf.compat.v2.nn.depthwise_conv2d(x, kernel, [1, 1, 1, 1], 'SAME')
    optimizer = tf.train.AdagradOptimizer(0.1)
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import is_first_call, runs_on_npu
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ...tf_api.name_tables import AVOID_IN_2
from ..base import Context, Finding, Message

CODE = "NPU217"
NEEDS = {"compat_v1": True}
CALLS = AVOID_IN_2
_ADVICE = {
    "AdagradDAOptimizer": Message("Use {0}", "tf.train.AdagradOptimizer"),
    "AveragePooling3D": "Use tf.compat.v2.nn.avg_pool3d, which is supported",
    "basic_train_loop": "Write the loop of session.run calls yourself",
    "depthwise_conv2d": "Use tf.compat.v2.nn.depthwise_conv2d, which is supported",
    "regressor_parse_example_spec": "Write the dictionary of tf.io.FixedLenFeature yourself",
}


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    short = last_part(name)
    spelled = context.names.spelled_name(call.node.func, call.where) or ""
    if (
        context.compat_v1
        and ".compat.v2." not in spelled
        and runs_on_npu(context, call.node)
        and is_first_call(context, call, frozenset({name}), context.names.tree)
    ):
        advice = _ADVICE.get(short, "Run one step with it on an NPU before a long training")
        yield Finding(call.node, "{0} is unsupported on the NPU with TensorFlow 2.6. {1}", short, advice)
