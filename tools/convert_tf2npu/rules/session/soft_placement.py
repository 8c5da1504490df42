"""Enable soft device placement.

A graph for the NPU names devices of its own, so TensorFlow must be allowed to place operations on other devices.
``npu_config_proto`` enables soft placement in session configurations. The rule enables it in
``tf.config.set_soft_device_placement``.

Before::

    import tensorflow as tf

    tf.config.set_soft_device_placement(False)

After::

    import tensorflow as tf

    tf.config.set_soft_device_placement(True)

Untouched::

    import tensorflow as tf

    tf.config.set_soft_device_placement(True)
    config = tf.compat.v1.ConfigProto(allow_soft_placement=False)
"""

from __future__ import annotations

from typing import Iterator

from ...rewrite.call_edits import rename
from ...semantics.model import Call
from ...semantics.signatures import bind
from ...syntax.expressions import constant
from ..base import Change, Context, Result

CODE = "NPU113"
CALLS = frozenset({"tensorflow.config.set_soft_device_placement"})


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    value = bind(call.node, ("enabled",)).args.get("enabled")
    if value is not None and constant(value) != (True,):
        yield Change(
            call.node,
            "soft device placement enabled",
            (rename(context.source, value, "True"),),
        )
