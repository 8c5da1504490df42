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

import os

from npu_shim._host.lazy_names import lazy_names

__version__ = "1.0.0"
# npu_shim.hccl, npu_shim.tbe and other modules at the vendor's paths; in a wheel they lie beside this file
__path__.append(os.path.join(os.path.dirname(__file__), "_vendor_paths", "modules"))

__all__ = ["__version__", "device", "install", "session_config", "uninstall"]
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "npu_shim.config.install": "install uninstall",
        "npu_shim.config.session": "session_config",
        "npu_shim._host.host_device": "device",
        "npu_shim.data": "data",  # available without an import
    },
)
