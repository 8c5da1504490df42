"""Unsupported data formats.

Operators of the NPU support the formats NCHW, NHWC, NC, HWCN and CN. Convolutions over one or three spatial
dimensions have other formats.

* One dimension: use a 2-D convolution with a dimension of size 1.
* Three dimensions: use 2-D convolutions slice by slice, or keep this part on the host.

Reported::

    import tensorflow as tf

    y = tf.nn.conv3d(x, w, strides=[1, 1, 1, 1, 1], padding='SAME', data_format='NCDHW')

Reported::

    import tensorflow as tf

    y = tf.nn.conv1d(x, w, stride=1, padding='SAME', data_format='NWC')

Untouched::

    import tensorflow as tf

    y = tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding='SAME', data_format='NCHW')
    z = tf.layers.conv3d(x, 8, 3, data_format='channels_last')

Untouched::

    import plotting
    import tensorflow as tf

    plotting.show(x, data_format='HWC')
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...syntax.expressions import boxed_constant
from ..base import Context, Finding

CODE = "NPU208"
_KNOWN = frozenset({"NCHW", "NHWC", "NC", "HWCN", "CN", "N..C", "NC..", "CHANNELS_FIRST", "CHANNELS_LAST"})
_ADVICE = {
    "NWC": "Use a 2-D convolution of tf.expand_dims(x, 1)",
    "NCW": "Use a 2-D convolution of tf.expand_dims(x, 2)",
}


def check_file(context: Context) -> Iterator[Finding]:
    if "data_format" not in context.source.text:
        return
    for call in context.names.calls:
        for keyword in call.node.keywords:
            value = boxed_constant(keyword.value) if keyword.arg == "data_format" else None
            if (
                value
                and isinstance(value[0], str)
                and value[0].upper() not in _KNOWN
                and (context.resolve(call.node.func, call.where) or "").startswith("tensorflow.")
                and runs_on_npu(context, call.node)
            ):
                advice = _ADVICE.get(value[0], "Use 2-D convolutions slice by slice, or keep this part on the host")
                yield Finding(keyword.value, "the data format {0} is unsupported on the NPU. {1}", value[0], advice)
