"""float64 and complex tensors.

The NPU computes in float16, float32 and integers. It cannot compile float64 or complex tensors. In the input
pipeline, which runs on the host, these are fine and not reported. Cast them before they reach the model. Complex
numbers can also be written as two float32 tensors, one for the real and one for the imaginary part.

Reported::

    import tensorflow as tf

    x = tf.placeholder(tf.float64, [8, 3])
    y = tf.cast(x, tf.double)

Reported::

    import numpy as np
    import tensorflow as tf

    w = tf.get_variable('w', [3], dtype='float64')
    v = tf.constant(0.5, dtype=np.float64)
    spectrum = tf.signal.rfft(w)

Untouched::

    import numpy as np
    import tensorflow as tf

    x = tf.placeholder(tf.float32, [8, 3])
    data = np.zeros([8, 3], dtype=np.float64)
    y = tf.cast(x, tf.int64)

Untouched::

    import tensorflow as tf

    dataset = tf.data.TextLineDataset(files).map(
        lambda line: tf.cast(tf.string_to_number(line, tf.float64), tf.float32))
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...semantics.model import Call, Where
from ...syntax.expressions import constant, last_part
from ..base import Context, Finding, Result

CODE = "NPU221"
_TYPED = frozenset(
    "tensorflow." + name
    for name in """
cast saturate_cast placeholder placeholder_with_default constant Variable get_variable zeros ones
zeros_like ones_like fill eye range linspace one_hot convert_to_tensor random_normal random_uniform
truncated_normal random.normal random.uniform random.truncated_normal keras.Input keras.layers.Input
keras.backend.cast keras.backend.variable keras.backend.placeholder keras.backend.constant
initializers.constant constant_initializer dtypes.cast""".split()
)
_DOUBLE = frozenset({"tensorflow.to_double"})
_COMPLEX = frozenset(
    "tensorflow." + name
    for name in """
complex dtypes.complex to_complex64 to_complex128 fft fft2d fft3d ifft ifft2d ifft3d
signal.fft signal.fft2d signal.fft3d
signal.ifft signal.ifft2d signal.ifft3d signal.rfft signal.rfft2d signal.rfft3d signal.irfft
signal.irfft2d signal.irfft3d signal.stft signal.inverse_stft spectral.fft spectral.fft2d spectral.fft3d
spectral.ifft spectral.ifft2d spectral.ifft3d spectral.rfft spectral.rfft2d spectral.rfft3d spectral.irfft
spectral.irfft2d spectral.irfft3d contrib.signal.stft contrib.signal.inverse_stft""".split()
)
_FLOATX = frozenset({"tensorflow.keras.backend.set_floatx"})
_TYPE_FIRST = _FLOATX | {"tensorflow.placeholder"}
CALLS = _TYPED | _DOUBLE | _COMPLEX | _FLOATX
_BAD = {"float64": "float64", "double": "float64", "complex64": "complex64", "complex128": "complex128"}


def check_call(context: Context, call: Call, name: str) -> Iterator[Result]:
    short = last_part(name)
    if name in _DOUBLE:
        kind: str | None = "float64"
    elif name in _COMPLEX:
        kind = "complex"
    else:
        # The first argument of all other calls is a value or a name, not a type.
        values = call.node.args[0 if name in _TYPE_FIRST else 1 :] + [
            k.value for k in call.node.keywords if k.arg in ("dtype", "DstT") or name in _FLOATX
        ]
        kind = next((k for k in (_type(context, v, call.where) for v in values) if k), None)
    if kind is None or not runs_on_npu(context, call.node):
        return
    if name in _FLOATX:
        yield Finding(call.node, "{0} is unsupported on the NPU. Write set_floatx('float32')", kind)
    elif kind == "float64":
        replacement = "tf.cast(..., tf.float32)" if name in _DOUBLE else "tf.float32"
        yield Finding(call.node, "float64 is unsupported on the NPU. Write {0}", replacement)
    else:
        yield Finding(
            call.node,
            "complex tensors ({0}) are unsupported on the NPU. "
            "Compute them in the input pipeline, or use two float32 tensors for the real and imaginary parts",
            short,
        )


def _type(context: Context, node: ast.AST, where: Where) -> str | None:
    value = constant(node)
    if value:
        return _BAD.get(value[0]) if isinstance(value[0], str) and value[0] != "double" else None
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    root, _, rest = (context.resolve(node, where) or "").partition(".")
    if rest.startswith("dtypes."):
        rest = rest[len("dtypes.") :]
    return _BAD.get(rest) if root in ("tensorflow", "numpy") else None
