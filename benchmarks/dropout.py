"""The speed of npu_ops.dropout, against tf.nn.dropout and against the limit.

    python benchmarks/dropout.py [--write] [--quick] [--variants float32 float16]

The limit is x + 1, which reads and writes each element once, and for the
gradient -dy, which does so too.
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from benchmarks import kernels  # noqa: E402

_KEEP = 0.9


def check(name: str, x: Any, y: Any, gradient: Any) -> None:
    """The kept are scaled, by the same mask in the gradient, whose incoming gradient is y; and they are so many."""
    if name == "limit":
        return
    kept = y != 0
    np.testing.assert_allclose(y, np.where(kept, x / _KEEP, 0), rtol=1e-2, atol=1e-6)
    np.testing.assert_allclose(gradient, np.where(kept, y / _KEEP, 0), rtol=1e-2, atol=1e-6)
    zeros = (x == 0).mean()  # of a half type
    coarse = 2.0**-8 if name == "tf.nn.dropout" else 0.0  # it compares numbers of 8 bits where the type is bfloat16
    assert abs(kept.mean() + zeros - _KEEP) < 6 * np.sqrt(_KEEP * (1 - _KEEP) / x.size) + zeros + coarse


def forms() -> kernels.Forms:
    """Return the forms that are compared."""
    import tensorflow as tf

    from npu_shim.npu_init import npu_ops

    return {
        "tf.nn.dropout": lambda x: tf.compat.v1.nn.dropout(x, rate=1 - _KEEP),
        "ours": lambda x: npu_ops.dropout(x, keep_prob=_KEEP),
        "limit": kernels.limit("dropout", lambda x, dy: -dy),
    }


if __name__ == "__main__":
    sys.exit(kernels.main("dropout", __doc__ or "", sys.argv[1:], forms, check))
