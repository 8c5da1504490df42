"""Low-level control flow: switch and merge.

The NPU compiles ``tf.cond``, ``tf.while_loop`` and ``tf.case`` as a whole. It cannot compile single switch and merge
operations, which these functions consist of.

Reported::

    import tensorflow as tf
    from tensorflow.python.ops import control_flow_ops

    def layer(x, choice):
        return control_flow_ops.merge([f(control_flow_ops.switch(x, choice)[1])])[0]

Untouched::

    import tensorflow as tf

    def layer(x, choice):
        return tf.cond(choice, lambda: f(x), lambda: x)
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ..base import Context, Finding

CODE = "NPU243"
CALLS = frozenset(
    root + name
    for root in (
        "tensorflow.python.ops.control_flow_ops.",
        "tensorflow.python.ops.gen_control_flow_ops.",
        "tensorflow.raw_ops.",
    )
    for name in ("switch", "merge", "ref_switch", "ref_merge", "Switch", "Merge", "RefSwitch", "RefMerge")
)


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    if runs_on_npu(context, call.node):
        yield Finding(
            call.node, "the NPU cannot compile {0} on its own. Use tf.cond, tf.case or tf.while_loop", last_part(name)
        )
