"""npu_shim: train TensorFlow scripts on Ascend NPUs, with the same numerics on a CPU.

Importing this package patches nothing, uses no device and does not import
TensorFlow. Each public name is loaded on first use::

    import npu_shim
    npu_shim.install()                       # every new Session carries the NPU config
    config = npu_shim.session_config(precision_mode="allow_mix_precision")
    print(npu_shim.device())                 # npu or cpu, and why

``from npu_shim.npu_init import *`` exports every name of the vendor's
``npu_bridge.npu_init``, and installs, as its users expect.
"""

from __future__ import annotations

from npu_shim._lazy_names import lazy_names

__version__ = "0.1.0"

__all__ = ["__version__", "device", "install", "session_config", "uninstall"]
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "npu_shim._install": "install uninstall",
        "npu_shim.config.session": "session_config",
        "npu_shim._device": "device",
        "npu_shim.data": "data",  # available without an import
    },
)
