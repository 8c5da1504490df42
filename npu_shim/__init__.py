"""npu_shim: train TensorFlow scripts on Ascend NPUs, and faithfully on the CPU where there is no card.

Importing this package patches nothing, touches no device and does not import
TensorFlow; each public name is loaded when it is first used::

    import npu_shim
    npu_shim.install()                       # every new Session carries the NPU config
    config = npu_shim.session_config(precision_mode="allow_mix_precision")
    print(npu_shim.device())                 # npu or cpu, and why

``from npu_shim.npu_init import *`` gives every name scripts know from the
vendor's ``npu_bridge.npu_init`` and installs, as its users expect of it.
"""
from __future__ import annotations

import importlib
from typing import Any, List

__version__ = "0.1.0"

_HOME = {
    "install": "npu_shim._install",
    "uninstall": "npu_shim._install",
    "session_config": "npu_shim.config.session",
    "device": "npu_shim._device",
}
_PACKAGES = ("data",)  # npu_shim.data works without an import of its own

__all__ = ["__version__", "device", "install", "session_config", "uninstall"]


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use (PEP 562)."""
    if name in _PACKAGES:
        return importlib.import_module(f"npu_shim.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'npu_shim' has no attribute {name!r}; it offers {', '.join(__all__)}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted(set(globals()) | set(__all__) | set(_PACKAGES))
