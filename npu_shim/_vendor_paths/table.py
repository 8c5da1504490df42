"""The table of the vendor's module paths under the package npu_shim, so that a port by hand changes one word.

``npu_bridge.estimator.npu.npu_config`` becomes ``npu_shim.estimator.npu.npu_config``,
``npu_device.configs.npu_config`` becomes ``npu_shim.npu_device.configs.npu_config``,
and so on. The modules of graph mode with TensorFlow 2, ``npu_device.compat.v1.estimator``
and others, are second names of those of npu_bridge (``second_names.py``). The table, ``modules.json``, lists where each
name lives. ``generate.py`` writes the modules. The home of a name is imported when the name is first used. On an NPU,
each name of npu_bridge is the vendor's own object, except those of ALWAYS_OWN.
"""

from __future__ import annotations

import json
import pkgutil
from typing import Mapping

NPU_ONLY = "ops.npu_only:"  # followed by the name of a module in ops/npu_only.py

# Homes whose names are npu_shim's on an NPU too; docs/vendor-differences.md has the reasons.
ALWAYS_OWN = (
    "config.install",
    "config.nested",
    "config.run_config",
    "distributed.ranks",
    "estimator.keras_to_npu",
    "estimator.npu_estimator",
    "experimental.get_shape",
    "experimental.image",
    "ops.keras_dropout",
    "training.strategy",
)
# Modules that npu_bridge does not have, or that cannot be imported from it
OUTSIDE_NPU_BRIDGE = ("_api", "hccl.manage", "hccl.split", "npu_device.")
# By the vendor's module: its homes, relative to the root package, and the names that live in each, separated by spaces
TABLE: Mapping[str, Mapping[str, str]] = json.loads(pkgutil.get_data(__name__, "modules.json") or b"")
GRAPH_MODE = "npu_device.compat.v1."
_NOT_IN_GRAPH_MODE = ("npu_device.", "hccl.manage", "hccl.split")
IN_GRAPH_MODE = ("estimator", *(module for module in TABLE if not module.startswith(_NOT_IN_GRAPH_MODE)))
ON_IMPORT = {"estimator.npu.npu_convert_dropout": "switch_keras_dropout()"}  # as in the vendor's module


def names_of_row(source: str, names: str) -> list[str]:
    """Return the names of a row: those listed, or all of a table of ops/npu_only.py."""
    if names:
        return names.split()
    from npu_shim.ops.npu_only import SIGNATURES

    return list(SIGNATURES[source[len(NPU_ONLY) :]])
