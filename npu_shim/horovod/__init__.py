"""Horovod's interface for TensorFlow and Keras over the collectives of npu_shim.

A script changes its import: ``import npu_shim.horovod.tensorflow as hvd``. Everything else stays as it was
written for Horovod 0.28. The ranks are those of the launcher; docs/horovod.md lists what differs.
"""

from __future__ import annotations

from typing import NoReturn

__version__ = "0.28.1"  # the Horovod whose interface this is


def run(func: object, *args: object, np: int | None = None, **kwargs: object) -> NoReturn:
    """Raise NotImplementedError: the launcher starts ranks, a script does not."""
    raise NotImplementedError(
        "horovod.run() starts a function on several ranks, which npu_shim does not do. Call the function, and start "
        f"the script with npu-shim launch --ranks {np or 'N'}"
    )
