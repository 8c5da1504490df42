"""Write packages with the vendor's modules, names and signatures, for a host that seems to have a card.

The modules are made from the table of names, ``vendor_names.txt``: each function and method has the vendor's parameters,
so that a call which the vendor's package would refuse is a TypeError. ``vendor_code.py`` says what it does then: it makes
the operators of ``vendor_ops.txt``, or records the call.
"""

from __future__ import annotations

import os
import re
from typing import Iterator

HERE = os.path.dirname(os.path.abspath(__file__))
GRAPH_MODE_OF_TF2 = "npu_device.compat.v1"
# npu_device.compat.v1 is npu_bridge for TensorFlow 2, without these modules.
ABSENT_IN_TF2 = (".npu_loss_scale_manager", ".npu_loss_scale_optimizer")
_HEAD = """import vendor_code as _code
from vendor_code.names import *  # the names in signatures and the bases of classes
from vendor_code.names import _DynamicBasic
"""


def table() -> dict[str, list[str]]:
    """Return the lines of each module of the table, which are Python stubs."""
    modules: dict[str, list[str]] = {}
    lines: list[str] = []
    with open(os.path.join(HERE, "vendor_names.txt"), encoding="utf-8") as file:
        for line in file.read().splitlines():
            head = re.match(r"# ((?:hccl|npu_bridge|npu_device)\S*)$", line)
            if head:
                lines = modules.setdefault(head[1], [])
            elif line and not line.startswith("#"):
                lines.append(line)
    return modules


def write(folder: str, face: str) -> None:
    """Write the packages of a face.

    Args:
        folder: where the packages go; put it on sys.path.
        face: 'npu_bridge' (TensorFlow 1.15) or 'npu_device' (TensorFlow 2).
    """
    sources = {}
    for module, lines in table().items():
        package = module.partition(".")[0]
        if package == "npu_bridge" and face == "npu_device" and not module.endswith(ABSENT_IN_TF2):
            sources[GRAPH_MODE_OF_TF2 + module[len("npu_bridge") :]] = "\n".join(_code(module, lines))
        elif package in (face, "hccl"):
            sources[module] = "\n".join(_code(module, lines))
    for module, source in sources.items():
        parts = module.split(".")
        for end in range(1, len(parts)):
            _add(os.path.join(folder, *parts[:end], "__init__.py"), "")
        is_package = any(other.startswith(module + ".") for other in sources)
        _add(
            os.path.join(folder, *parts, "__init__.py") if is_package else os.path.join(folder, *parts) + ".py", source
        )


def _add(path: str, source: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write(source)


def _code(module: str, lines: list[str]) -> Iterator[str]:
    yield _HEAD
    owner = ""
    for line in lines:
        what, _, name, rest = re.match(r"\s*(def |class |)()(\w+)(.*)$", line).groups()  # type: ignore[union-attr]
        if line.startswith(" "):
            if not what:
                yield f"    {name} = property(lambda self: _code.method('{owner}.{name}', {{'self': self}}))"
            else:
                how = "construct" if name in ("__init__", "__new__") else "method"
                yield f"{line[: -len(' ...')]} return _code.{how}('{owner}.{name}', locals())"
        elif what == "def ":
            stub, _, operator = line.partition("  # ")
            how = f"make('{operator}', " if operator else "call("
            yield f"{stub[: -len(' ...')]} return _code.{how}'{module}.{name}', locals())"
        elif what == "class ":
            owner = f"{module}.{name}"
            yield line
            yield "" if line.endswith(" ...") else f'    """The vendor\'s {name}."""'
        else:
            yield f"{name} = _code.constant('{module}.{name}')"
    yield ""
