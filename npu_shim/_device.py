"""Find out if there is an NPU, and why not. Only this module knows the device.

There is an NPU if a package of the vendor can be imported (``npu_bridge`` for
TensorFlow 1.15, ``npu_device`` for TensorFlow 2.6) and the driver shows a device
file (``/dev/davinci0`` and so on). Otherwise everything runs on the CPU.
``NPU_SHIM_FALLBACK`` controls the message: ``warn`` (once, the default),
``error`` or ``silent``.
"""

from __future__ import annotations

import functools
import glob
import importlib
import importlib.util
import sys
import warnings
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Callable, TypeVar, cast

from npu_shim import _env

_Function = TypeVar("_Function", bound=Callable[..., Any])

VENDOR_PACKAGE = "npu_bridge"
VENDOR_PACKAGE_TF2 = "npu_device"
_GRAPH_MODE_OF_TF2 = VENDOR_PACKAGE_TF2 + ".compat.v1"  # has the modules of npu_bridge
DEVICE_FILES = "/dev/davinci[0-9]*"


@dataclass(frozen=True)
class Device:
    """The device of the ops: ``kind`` is ``'npu'`` or ``'cpu'``; ``reason`` is why.

    On an NPU ``package`` is the vendor's package that serves it.
    """

    kind: str
    reason: str
    package: str = VENDOR_PACKAGE

    @property
    def is_npu(self) -> bool:
        return self.kind == "npu"

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


def device() -> Device:
    """Return the device of the ops on this machine, and why. Starts nothing and imports nothing.

    Returns:
        A Device with ``kind`` ('npu' or 'cpu') and ``reason``.
    Raises:
        ValueError: if NPU_SHIM_FALLBACK (or another variable of npu_shim) has
            a value that is not allowed.
    """
    _env.read()
    return look()


def look() -> Device:
    """Return the device without a check of the environment variables."""
    package = next(filter(_importable, (VENDOR_PACKAGE, VENDOR_PACKAGE_TF2)), None)
    if package is None:
        return Device("cpu", f"the vendor's package {VENDOR_PACKAGE} is not installed for {sys.executable}")
    device_files = sorted(glob.glob(DEVICE_FILES))
    if not device_files:
        return Device("cpu", f"{package} is installed, but the driver shows no card ({DEVICE_FILES} matches nothing)")
    return Device(
        "npu",
        f"{package} is installed and the driver shows {len(device_files)} card(s), first {device_files[0]}",
        package,
    )


def resolve() -> Device:
    """Return the device for a script that is about to use it, and apply NPU_SHIM_FALLBACK.

    Returns:
        The Device; on an NPU the vendor's op library is loaded.
    Raises:
        RuntimeError: if there is no NPU and NPU_SHIM_FALLBACK is 'error'.
    """
    found = device()
    if found.is_npu:
        vendor(VENDOR_PACKAGE + ".estimator.npu_ops")  # loading it registers NpuOptimizer with TensorFlow
        return found
    policy = _env.read().fallback
    if policy == "error":
        raise RuntimeError(
            f"There is no NPU here ({found.reason}) and NPU_SHIM_FALLBACK=error forbids the CPU. Install the vendor's "
            "driver and npu_bridge, or export NPU_SHIM_FALLBACK=warn (or silent) to run on the CPU."
        )
    if policy == "warn":
        _warn_once(found.reason)
    return found


def vendor(module: str) -> ModuleType:
    """Import a module of the vendor's packages. Call it only if there is an NPU.

    Args:
        module: a module of npu_bridge, hccl or npu_device. For one of npu_bridge, the package for TensorFlow 2 has its
            own module.
    """
    if module.startswith(VENDOR_PACKAGE + ".") and look().package == VENDOR_PACKAGE_TF2:
        module = _GRAPH_MODE_OF_TF2 + module[len(VENDOR_PACKAGE) :]
    return importlib.import_module(module)


def has_npu_device() -> bool:
    """Return True if there is an NPU and the vendor's package for TensorFlow 2 serves it."""
    found = look()
    return found.is_npu and found.package == VENDOR_PACKAGE_TF2


def prefer_vendor(module: str) -> Callable[[_Function], _Function]:
    """Return a decorator: on an NPU, the function of the same name in the vendor's module is called instead.

    Args:
        module: a module of the vendor; one of npu_device is used only where that package serves the NPU.
    """
    is_served = has_npu_device if module.startswith(VENDOR_PACKAGE_TF2) else lambda: device().is_npu

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def answer(*args: Any, **kwargs: Any) -> Any:
            chosen = getattr(vendor(module), function.__name__) if is_served() else function
            return chosen(*args, **kwargs)

        return cast(_Function, answer)

    return decorate


def use_vendor_class(module: str) -> Callable[[type], type]:
    """Return a class decorator: on an NPU, calling the class creates the vendor's class of the same name.

    Args:
        module: the module of the vendor's class.
    """

    def decorate(cls: type) -> type:
        def __new__(created: type, *args: Any, **kwargs: Any) -> Any:
            if created is cls and device().is_npu:
                return getattr(vendor(module), cls.__name__)(*args, **kwargs)
            return object.__new__(created)

        cls.__new__ = __new__  # type: ignore[assignment]
        return cls

    return decorate


@functools.lru_cache(maxsize=None)
def _warn_once(reason: str) -> None:
    warnings.warn(
        f"npu_shim runs on the CPU: {reason}. Set NPU_SHIM_FALLBACK=silent to hide this, =error to forbid it.",
        RuntimeWarning,
        stacklevel=3,
    )


def _importable(package: str) -> bool:
    if package in sys.modules:
        return sys.modules[package] is not None
    return importlib.util.find_spec(package) is not None
