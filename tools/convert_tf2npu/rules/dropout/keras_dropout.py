"""Keras Dropout layers keep TensorFlow's dropout.

A ``Dropout`` layer works on the NPU, but with TensorFlow's own operations. The vendor's way to the
NPU's operator changes every Dropout layer of the process when it is imported, so that the choice is
left to whoever owns the script.

Untouched::

    import tensorflow.compat.v1 as tf

    layer = tf.keras.layers.Dropout(0.1)

Untouched::

    from mylayers import Dropout
    import tensorflow as tf

    layer = Dropout(0.1)
"""

from __future__ import annotations

from typing import Iterator

from ...semantics.model import Call
from ...syntax.expressions import last_part
from ..base import Context, Finding, Result

CODE = "NPU201"
CALLS = frozenset(
    {
        "tensorflow.keras.layers.Dropout",
        "tensorflow.layers.Dropout",
        "tensorflow.keras.layers.SpatialDropout1D",
        "tensorflow.keras.layers.SpatialDropout2D",
        "tensorflow.keras.layers.SpatialDropout3D",
    }
)


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    if "npu_convert_dropout" in context.source.text:
        return
    yield Finding(
        call.node,
        '{} keeps the dropout of TensorFlow; "from npu_shim.estimator.npu import '
        'npu_convert_dropout" switches all Dropout layers of the process to that of the NPU'.format(last_part(name)),
    )
