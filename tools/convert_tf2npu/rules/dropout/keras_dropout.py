"""Keras Dropout layers that use the dropout of TensorFlow.

A ``Dropout`` layer works on the NPU, but with the operations of TensorFlow instead of the NPU operator. Import
``npu_convert_dropout`` from ``npu_shim.estimator.npu`` to use the NPU operator in all Dropout layers of the process.
The rule does not add this import, because it affects the whole process.

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

from ...analysis.tensorflow_version import is_two
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ..base import Context, Finding, Result

CODE = "NPU201"
ONCE_A_FILE = True
CALLS = frozenset(
    {
        "tensorflow.keras.layers.Dropout",
        "tensorflow.layers.Dropout",
        "tensorflow.keras.layers.SpatialDropout1D",
        "tensorflow.keras.layers.SpatialDropout2D",
        "tensorflow.keras.layers.SpatialDropout3D",
    }
)


def check_call(context: Context, call: Call, name: str) -> Iterator[Result]:
    if "npu_convert_dropout" in context.source.text or is_two(context):
        return
    yield Finding(
        call.node,
        "{0} uses the dropout of TensorFlow. For the NPU operator write "
        '"from npu_shim.estimator.npu import npu_convert_dropout"',
        last_part(name),
    )
