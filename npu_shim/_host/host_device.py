"""Find out if there is an NPU, and why not. Only this module knows the device.

There is an NPU if the driver shows a device file (``/dev/davinci0`` and so on)
and a package of the vendor loads: ``npu_bridge`` for TensorFlow 1.15,
``npu_device`` for TensorFlow 2.6, whose part ``npu_device.compat.v1`` has the
modules of npu_bridge for graph mode. ``NPU_SHIM_FALLBACK`` is the policy without
an NPU: ``warn`` (one line, of rank 0), ``error`` or ``silent``. By default, a host without a card
warns, and a host whose card no package can use is an error.
"""

from __future__ import annotations

import functools
import glob
import importlib
import os
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Callable, TypeVar, cast

from npu_shim._host import host_env, mpirun
from npu_shim._host.messages import report
from npu_shim._host.packages import is_alias_module, is_importable, tensorflow_version
from npu_shim._tensorflow.types import Function, Result

_Function = TypeVar("_Function", bound=Function)
_Object = TypeVar("_Object", bound=Function)

VENDOR_PACKAGE = "npu_bridge"
VENDOR_PACKAGE_TF2 = "npu_device"
_GRAPH_MODE_OF_TF2 = VENDOR_PACKAGE_TF2 + ".compat.v1"  # has the modules of npu_bridge
DEVICE_FILES = "/dev/davinci[0-9]*"
ATLAS_910, ATLAS_A2, ATLAS_A3, ASCEND_A5 = "910", "A2", "A3", "A5"
_PCI_VENDOR = "0x19e5"
_PCI_PRODUCTS = {"0xd801": ATLAS_910, "0xd802": ATLAS_A2, "0xd803": ATLAS_A3, "0xd806": ASCEND_A5}


@dataclass(frozen=True)
class Device:
    """The device of the ops: ``kind`` is ``'npu'`` or ``'cpu'``; ``reason`` is why.

    On an NPU ``package`` is the vendor's package that serves it. ``cards`` are the
    device files that the driver shows, also where no package can use them.
    """

    kind: str
    reason: str
    package: str = VENDOR_PACKAGE
    cards: tuple[str, ...] = ()

    @property
    def is_npu(self) -> bool:
        return self.kind == "npu"

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


def detect_without_import() -> Device:
    """Return the device as far as it is known without an import of the vendor's package."""
    if host_env.is_host_only():
        return Device("cpu", "this run leaves the devices alone")
    cards = tuple(sorted(glob.glob(DEVICE_FILES)))
    if not cards:
        return Device("cpu", f"the driver shows no card ({DEVICE_FILES} matches nothing)")
    packages = _installed_vendor_packages()
    if not packages:
        return Device(
            "cpu",
            f"{_cards_text(cards)}, but {_wanted_package_text()} is not installed for {sys.executable}",
            cards=cards,
        )
    return _npu_device_of_package(cards, packages[0])


def card_product(root: str = "/") -> str | None:
    """Return the product of the cards on the PCI bus: 910, A2, A3, A5; None if there are none, or several products.

    Args:
        root: root of the file system.
    """
    products = set()
    for folder in glob.glob(os.path.join(root, "sys/bus/pci/devices/*")):
        vendor_id, device_id = (_first_line(os.path.join(folder, name)) for name in ("vendor", "device"))
        if vendor_id == _PCI_VENDOR and device_id in _PCI_PRODUCTS:
            products.add(_PCI_PRODUCTS[device_id])
    return products.pop() if len(products) == 1 else None


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            return stream.readline().strip()
    except OSError:
        return ""  # the device has just been removed


def device() -> Device:
    """Return the device of the ops on this machine, and why. Starts nothing.

    If the driver shows a card, it imports the vendor's package, because an installed package may not load.

    Returns:
        A Device with ``kind`` ('npu' or 'cpu') and ``reason``.
    Raises:
        ValueError: if NPU_SHIM_FALLBACK (or another variable of npu_shim) has
            a value that is not allowed.
    """
    host_env.read_environment()
    return detect_device()


def detect_device() -> Device:
    """Return the device without a check of the environment variables."""
    visible = detect_without_import()
    if not visible.is_npu:
        return visible
    failures = []
    for package in _installed_vendor_packages():
        failure = _load_failure_text(package)
        if failure is None:
            return _npu_device_of_package(visible.cards, package)
        failures.append(f"{package} does not load ({failure})")
    return Device("cpu", f"{_cards_text(visible.cards)}, but {' and '.join(failures)}", cards=visible.cards)


def is_npu() -> bool:
    """Return True if the ops run on an NPU.

    Raises:
        RuntimeError: if the driver shows a card that no package can use, and NPU_SHIM_FALLBACK does not allow the CPU.
    """
    return _device_or_raise_for_unused_card(device()).is_npu


def require_device() -> Device:
    """Return the device for a script that is about to use it, and apply NPU_SHIM_FALLBACK.

    Returns:
        The Device; on an NPU the vendor's op library is loaded.
    Raises:
        RuntimeError: if there is no NPU and NPU_SHIM_FALLBACK does not allow the CPU.
    """
    chosen = _device_or_raise_for_unused_card(device())
    if chosen.is_npu:
        import_vendor_module(VENDOR_PACKAGE + ".estimator.npu_ops")  # loading it registers NpuOptimizer with TensorFlow
        return chosen
    environment = host_env.read_environment()
    policy = environment.fallback or "warn"
    if policy == "error":
        raise RuntimeError(
            f"There is no NPU here ({chosen.reason}) and NPU_SHIM_FALLBACK=error forbids the CPU. Install the vendor's "
            f"driver and {_wanted_package_text()}, or export NPU_SHIM_FALLBACK=warn (or silent) to run on the CPU."
        )
    if policy == "warn" and not environment.rank_id:  # one rank speaks for its job
        _warn_of_cpu_once(f"the NPU is not used: {chosen.reason}" if chosen.cards else "no NPU here")
    return chosen


def unused_card_text(available: Device) -> str | None:
    """Return what is wrong and what to install if the driver shows a card that no package can use, else None."""
    if available.is_npu or not available.cards:
        return None
    version = tensorflow_version()
    if version and not version.startswith(("1.15.", "2.6.")):
        fix = f"TensorFlow {version} has no vendor package: use TensorFlow 2.6 or 1.15"
    elif _installed_vendor_packages():
        fix = "Source the set_env.sh of CANN's toolkit and of its TensorFlow plugin, and compare their versions"
    else:
        plugin = "CANN's TensorFlow plugin (TF Adapter)"
        fix = f"Install {plugin}, which has {_wanted_package_text()}, and add its folder to PYTHONPATH"
    return f"The card is not used: {available.reason}. {fix}; npu-shim doctor shows what is installed"


def _device_or_raise_for_unused_card(available: Device) -> Device:
    """Return the device, and raise an error if a card would stay unused by mistake."""
    problem = unused_card_text(available)
    if problem and host_env.read_environment().fallback in (None, "error"):
        raise RuntimeError(f"{problem}. To run on the CPU on purpose, export NPU_SHIM_FALLBACK=warn.")
    return available


def _installed_vendor_packages() -> list[str]:
    """Return the vendor's packages that Python finds, the one for this TensorFlow first."""
    packages = [VENDOR_PACKAGE, VENDOR_PACKAGE_TF2]
    if (tensorflow_version() or "1").startswith("2"):
        packages.reverse()
    return [package for package in packages if is_importable(package)]


def _wanted_package_text() -> str:
    """Return the vendor's package for this TensorFlow, or both."""
    version = tensorflow_version() or ""
    if version.startswith("1."):
        return VENDOR_PACKAGE
    if version.startswith("2.6."):
        return VENDOR_PACKAGE_TF2
    return f"{VENDOR_PACKAGE} (TensorFlow 1.15) or {VENDOR_PACKAGE_TF2} (TensorFlow 2.6)"


def _cards_text(cards: tuple[str, ...]) -> str:
    return f"the driver shows {len(cards)} card(s), first {cards[0]}"


def _npu_device_of_package(cards: tuple[str, ...], package: str) -> Device:
    others = [other for other in _installed_vendor_packages() if other != package]
    text = f"{_cards_text(cards)}; {package} serves TensorFlow {tensorflow_version() or 'of unknown version'}"
    if package == VENDOR_PACKAGE_TF2:
        text += f", in graph mode {_GRAPH_MODE_OF_TF2}"
    if others:
        text += f" ({others[0]} is installed too and not used)"
    return Device("npu", text, package, cards)


def _load_failure_text(package: str) -> str | None:
    """Return why a vendor's package cannot be imported, None if it can."""
    return None if sys.modules.get(package) is not None else _import_failure_text(package)


@functools.lru_cache(maxsize=None)
def _import_failure_text(package: str) -> str | None:
    try:
        importlib.import_module(package)
    except Exception as error:  # a missing library is an OSError or ImportError, another TensorFlow an AttributeError
        text = str(error).strip().splitlines()
        return f"{type(error).__name__}: {text[0] if text else 'no message'}"
    return None


def import_vendor_module(module: str) -> ModuleType:
    """Import a module of the vendor's packages. Call it only if there is an NPU.

    Args:
        module: a module of npu_bridge, hccl or npu_device. For one of npu_bridge, the package for TensorFlow 2 has its
            own module.
    Raises:
        ValueError: the ranks of mpirun or srun are on several hosts, and there is no rank table.
    """
    root = module.partition(".")[0]
    mpirun.raise_for_missing_table(host_env.process_environ())
    host_env.export_rank_variables()
    if root == VENDOR_PACKAGE:
        # Its estimator and optimizers need one.
        host_env.process_environ().setdefault("JOB_ID", host_env.DEFAULT_JOB_ID)
    if root == VENDOR_PACKAGE and detect_device().package == VENDOR_PACKAGE_TF2:
        module = _GRAPH_MODE_OF_TF2 + module[len(VENDOR_PACKAGE) :]
        if _GRAPH_MODE_OF_TF2 not in sys.modules:
            from npu_shim._tensorflow import tf_gradients

            # Both of its modes register this gradient, and graph mode fails if the other was first.
            tf_gradients.unregister_gradient("DropOutDoMask")
    loaded = importlib.import_module(module)
    if is_alias_module(loaded):
        raise ModuleNotFoundError(
            f"No module named {root!r}. Install the vendor's package; an alias of npu_shim cannot drive the NPU.",
            name=root,
        )
    return loaded


def find_vendor_module(module: str) -> ModuleType | None:
    """Return a module of the vendor's packages, None if there is no NPU or the vendor has no such module.

    Args:
        module: as for import_vendor_module.
    Raises:
        RuntimeError: if the driver shows a card that no package can use, and NPU_SHIM_FALLBACK does not allow the CPU.
    """
    if not _device_or_raise_for_unused_card(detect_device()).is_npu:
        return None
    try:
        return import_vendor_module(module)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith((VENDOR_PACKAGE, VENDOR_PACKAGE_TF2)):
            return None
        raise


def vendor_object_or(own: _Object, module: str) -> _Object:
    """Return the vendor's object of the same name on an NPU, else ``own``.

    Args:
        own: a class or function of npu_shim.
        module: the module of the vendor that has the same name.
    """
    vendors = find_vendor_module(module)
    return own if vendors is None else getattr(vendors, own.__name__, own)


def has_npu_device() -> bool:
    """Return True if there is an NPU and the vendor's package for TensorFlow 2 serves it."""
    chosen = _device_or_raise_for_unused_card(detect_device())
    return chosen.is_npu and chosen.package == VENDOR_PACKAGE_TF2


def copy_vendor_names(name: str, module: str = "", attribute: str = "", own: str = "") -> None:
    """Give a module of npu_shim.npu_device all names of the vendor's module, if npu_device serves an NPU.

    Args:
        name: ``__name__`` of the module.
        module: the vendor's module; by default the one at the same path.
        attribute: an attribute of the vendor's module that has the names, instead of the module itself.
        own: names that remain npu_shim's, separated by spaces.
    """
    if not has_npu_device():
        return
    vendors: Result = import_vendor_module(module or name[len("npu_shim.") :])
    if attribute:
        vendors = getattr(vendors, attribute)
    kept = own.split()
    names = vars(sys.modules[name])
    names.update((key, value) for key, value in vars(vendors).items() if key[:2] != "__" and key not in kept)


def prefer_vendor_function(module: str) -> Callable[[_Function], _Function]:
    """Return a decorator: on an NPU, the function of the same name in the vendor's module is called instead.

    Args:
        module: a module of the vendor; one of npu_device is used only where that package serves the NPU.
    """
    is_served = has_npu_device if module.startswith(VENDOR_PACKAGE_TF2) else is_npu

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def answer(*args: object, **kwargs: object) -> Result:
            chosen = getattr(import_vendor_module(module), function.__name__) if is_served() else function
            return chosen(*args, **kwargs)

        return cast(_Function, answer)

    return decorate


@functools.lru_cache(maxsize=None)
def _warn_of_cpu_once(why: str) -> None:
    report(f"{why}; running on the CPU. NPU_SHIM_FALLBACK=silent hides this line, =error forbids the CPU.")
