"""On a card, each name at the vendor's path is the vendor's own object.

Exceptions are the names of ALWAYS_OWN and the functions of npu_init, which make and check configurations. They have the
vendor's parameters.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any, Iterator

import pytest
import vendor_package
from conftest import FACE

from npu_shim._tensorflow import tf_api
from npu_shim._vendor_paths import table

GRAPH_MODE = "npu_bridge" if FACE == "npu_bridge" else vendor_package.GRAPH_MODE_OF_TF2


def _own() -> set[str]:
    """Return the names that npu_shim serves itself on a card."""
    return {
        f"{module}.{name}"
        for module, homes in table.TABLE.items()
        for home, names in homes.items()
        if home in table.ALWAYS_OWN
        for name in table.names_of_row(home, names)
    }


# Names of npu_shim.npu_device that stay its own: they mend what the vendor's do not, or also serve graph mode.
_OWN_OF_TF2 = {
    "npu_device.distribute.hccl.npu_callbacks_append",
    "npu_device.distribute.hccl_ops.allgather",
    "npu_device.distribute.hccl_ops.reduce_scatter",
    "npu_device.distribute.npu_callbacks.NPUBroadcastGlobalVariablesCallback",
    "npu_device.npu_device.open",
    *(
        "npu_device.utils.file_deduplication." + name
        for name in ("PATTERN_0", "PATTERN_1", "get_file_hash", "is_dump_graph", "remove_duplicate_files")
    ),
}


def _names() -> Iterator[tuple[str, str, str]]:
    """Return module of npu_shim, module of the vendor and name of each row of the package for this TensorFlow."""
    for module, lines in vendor_package.table().items():
        package, _, below = module.partition(".")
        if package == "npu_bridge" and not (FACE == "npu_device" and module.endswith(vendor_package.ABSENT_IN_TF2)):
            where = (f"npu_shim.{below}", f"{GRAPH_MODE}.{below}")
        elif package == FACE:
            where = (f"npu_shim.{module}", module)
        else:
            continue
        for line in lines:
            if not line.startswith(" "):
                yield (*where, re.match(r"(?:def |class |)(\w+)", line)[1])  # type: ignore[index]


_WITH_OPTIONS = frozenset({"npu_config_proto"})  # npu_shim's takes NPU options, too


@pytest.mark.parametrize(
    "module, vendors_module, name", [pytest.param(*each, id=f"{each[0]}.{each[2]}") for each in _names()]
)
def test_is_the_vendors(module: str, vendors_module: str, name: str) -> None:
    if module.endswith("npu_convert_dropout") and not tf_api.has_keras_sessions():
        with pytest.raises(RuntimeError, match="the last TensorFlow that has it is 2.15"):
            importlib.import_module(module)
        return
    served = getattr(importlib.import_module(module), name)
    vendors = getattr(importlib.import_module(vendors_module), name)
    path = f"{module}.{name}"[len("npu_shim.") :]
    is_own = module == "npu_shim.npu_init" or path in _own() | _OWN_OF_TF2
    assert (served is vendors) != is_own
    if is_own and inspect.isfunction(vendors):
        more = [("options", inspect.Parameter.empty)] if name in _WITH_OPTIONS else []
        assert _parameters(served) == _parameters(vendors) + more


def _parameters(function: Any) -> list[tuple[str, Any]]:
    return [(each.name, each.default) for each in inspect.signature(function).parameters.values()]
