"""The speed of npu_unary_ops.gelu, against the formula that users write and against the limit.

    python benchmarks/gelu.py [--write] [--quick] [--variants float32 float16]

The limit is x + 1, which reads and writes each element once, and for the
gradient x * dy, as that reads both. tf.nn.gelu is there where TensorFlow has it.
"""

from __future__ import annotations

import math
import pathlib
import sys
from typing import Any

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from benchmarks import kernels  # noqa: E402


def formula(x: Any) -> Any:
    """As BERT and GPT have it."""
    import tensorflow as tf

    cdf = 0.5 * (1.0 + tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * tf.pow(x, 3))))
    return x * cdf


def check(name: str, x: Any, y: Any, gradient: Any) -> None:
    """Compares with float64; the gradient's incoming gradient is y."""
    if name == "limit":
        return
    x = x.astype(np.float64)
    t, slope = 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3), 2 * math.sqrt(2 / math.pi) * (1 + 0.134145 * x**2)
    s = 1 / (1 + np.exp(-t))
    np.testing.assert_allclose(y, x * s, rtol=2e-2, atol=2e-2)  # the formula itself is no better in the half types
    np.testing.assert_allclose(gradient, y * s * (1 + x * (1 - s) * slope), rtol=4e-2, atol=4e-2)


def forms() -> kernels.Forms:
    """Return the forms that are compared."""
    import tensorflow as tf

    from npu_shim.npu_init import npu_unary_ops

    made = {"formula": formula, "ours": npu_unary_ops.gelu}
    if hasattr(tf.nn, "gelu"):
        made["tf.nn.gelu"] = lambda x: tf.nn.gelu(x, approximate=True)
    made["limit"] = kernels.limit("gelu", lambda x, dy: x * dy)
    return made


if __name__ == "__main__":
    sys.exit(kernels.main("gelu", __doc__ or "", sys.argv[1:], forms, check))
