"""Horovod's interface for TensorFlow and Keras over the collectives of npu_shim.

A script changes its import: ``import npu_shim.horovod.tensorflow as hvd``. Everything else stays as it was
written for Horovod 0.28. The ranks are those of the launcher; docs/horovod.md lists what differs.
"""

__version__ = "0.28.1"  # the Horovod whose interface this is
