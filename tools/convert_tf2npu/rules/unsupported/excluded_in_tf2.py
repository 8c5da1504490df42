"""Calls that the vendor excludes on TensorFlow 2.6 only (with ``--compat-v1``).

The vendor's support list for TensorFlow 1.15 has them as supported, the one for 2.6 as not to be used, under
``tf.compat.v1`` too. Each name is told once in a file.

Told::

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

from ...analysis.device_placement import first_call, runs_on_card
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ...tf_api.support import AVOID_IN_2
from ..base import Context, Finding, Result

CODE = "NPU217"
NEEDS = {"compat_v1": True}
CALLS = AVOID_IN_2
_INSTEAD = {
    "AdagradDAOptimizer": "write tf.train.AdagradOptimizer(...)",
    "AveragePooling3D": "write tf.compat.v2.nn.avg_pool3d(...), which it has as supported",
    "basic_train_loop": "write the loop of session.run calls",
    "depthwise_conv2d": "write tf.compat.v2.nn.depthwise_conv2d(...), which it has as supported",
    "regressor_parse_example_spec": "write the dictionary of tf.io.FixedLenFeature",
}


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    short = last_part(name)
    spelled = context.names.spelled(call.node.func, call.where) or ""
    if (
        context.compat_v1
        and ".compat.v2." not in spelled
        and runs_on_card(context, call.node)
        and first_call(context, call, frozenset({name or ""}), context.names.tree)
    ):
        yield Finding(
            call.node,
            "the vendor's support list for TensorFlow 2.6 excludes {}; {}".format(
                short, _INSTEAD.get(short, "run one step with it on a card before a long training")
            ),
        )
