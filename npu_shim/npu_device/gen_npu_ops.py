"""The NPU's operators: ``npu.gen_npu_ops``.

On the CPU they are computed in TensorFlow's ops; those that are not in this release raise NotInThisRelease. Where the
vendor's package for TensorFlow 2 serves a card, each call goes to its own. npu_shim/ops/generated.py lists them.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

from npu_shim import _device
from npu_shim.ops import generated

_NAMES = frozenset(generated.names())


def __getattr__(name: str) -> Callable[..., Any]:
    if name in _NAMES:
        return _operator(name)
    if not name.startswith("_") and _device.has_npu_device():
        return _vendor(name)
    return generated.operator(name, "npu.gen_npu_ops")


def __dir__() -> list[str]:
    return generated.names()


@functools.lru_cache(maxsize=None)
def _operator(name: str) -> Callable[..., Any]:
    """Return a function that calls the vendor's operator on an NPU."""
    function = generated.operator(name, "npu.gen_npu_ops")

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return (_vendor(name) if _device.has_npu_device() else function)(*args, **kwargs)

    return called


def _vendor(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(_device.vendor("npu_device.npu_device").gen_npu_ops, name)
    return function
