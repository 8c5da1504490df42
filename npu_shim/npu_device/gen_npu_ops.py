"""The NPU's operators: ``npu.gen_npu_ops``.

On the CPU they are computed in TensorFlow's ops; those of npu_shim/ops/npu_only.py raise OnlyOnNPU. Where the
vendor's package for TensorFlow 2 serves a card, each name is its own. npu_shim/ops/generated.py lists them.
"""

from __future__ import annotations

from npu_shim._host import host_device
from npu_shim._tensorflow.types import Function
from npu_shim.ops import generated


def __getattr__(name: str) -> Function:
    return generated.find_operator(name, "npu.gen_npu_ops")


def __dir__() -> list[str]:
    return generated.operator_names()


host_device.copy_vendor_names(__name__, "npu_device.npu_device", "gen_npu_ops")
