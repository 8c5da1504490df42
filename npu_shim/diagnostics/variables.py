"""The environment variables that training depends on, their contradictions, and the rank table."""

from __future__ import annotations

import os
import re
from typing import Any, Mapping

from npu_shim import _env
from npu_shim.distributed.ranktable import model as ranktable
from npu_shim.distributed.ranktable.validate import ATLAS_910, examine
from npu_shim.distributed.world import world, world_size

# Of the vendor's runtime, of TensorFlow on the CPU, and of how either is found
_PREFIXES = (
    "ASCEND_",
    "HCCL_",
    "NPU_",
    "CM_",
    "GE_",
    "DUMP_",
    "PROFILING_",
    "TE_",
    "ENABLE_",
    "OPTION_EXEC_",
    "TF_XLA_",
    "TF_CPU_",
    "TF_CPP_",
    "TF_NUM_",
    "TF_ENABLE_",
    "OMP_",
    "KMP_",
)
_NAMES = (
    "AOE_MODE",
    "FUSION_TENSOR_SIZE",
    "PRINT_MODEL",
    "POD_NAME",
    "SOC_VERSION",
    "RESTORE_FROM",
    "STEP_NOW",
    "TOTAL_STEP",
    "LOSS_NOW",
    "TARGET_LOSS",
    "LOCAL_CHECKPOINT_DIR",
    "SLOG_PRINT_TO_STDOUT",
    "DEVICE_INDEX",
    "RANK_INDEX",
    "SERVER_ID",
    "CUDA_VISIBLE_DEVICES",
    "TF_USE_LEGACY_KERAS",
    "TF_DETERMINISTIC_OPS",
    "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
)
_SECRET = re.compile(r"TOKEN|SECRET|PASS|CREDENTIAL|(^|_)KEY(_|$)|AUTH")
_LOGIN = re.compile(r"(://)[^/@\s]+@")
HIDDEN = "(set, not shown)"


def variables(environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """What is set of what matters, what is not, and what contradicts itself.

    Args:
        environ: where to read.
    Returns:
        ``set``: values by name, without secrets; ``not_set``: names that npu_shim reads; ``rank_size``, None
        where it is not known; ``error``: the first contradiction, None where there is none.
    """
    found = {
        name: _shown(name, value)
        for name, value in sorted(environ.items())
        if name in _env.VARIABLES or name in _NAMES or name.startswith(_PREFIXES)
    }
    made: dict[str, Any] = {
        "set": found,
        "not_set": [name for name in _env.VARIABLES if not environ.get(name)],
        "rank_size": None,
        "error": None,
    }
    try:
        made["rank_size"] = world_size(environ)
        if _env.read(environ).cm_chief_ip is None:  # else the cards number the ranks
            world(environ)
    except ValueError as error:
        made["error"] = _without_login(str(error))
    return made


def rank_table(environ: Mapping[str, str] = os.environ) -> dict[str, Any] | None:
    """The file that RANK_TABLE_FILE names; None where it names none.

    Args:
        environ: where to read.
    Returns:
        ``path``; ``error``: why it cannot be used, None where it can; ``ranks`` and ``servers``: how many it names,
        None where that is not known; ``warnings``: what cards may not take.
    """
    path = environ.get("RANK_TABLE_FILE", "").strip()
    if not path:
        return None
    found: dict[str, Any] = {"path": path, "error": None, "ranks": None, "servers": None, "warnings": []}
    try:
        table = ranktable.read(path)
        found["ranks"], found["servers"] = table.size, len({server.server_id for server in table.servers})
        found["warnings"] = [str(problem) for problem in examine(ranktable.text_of(path), ATLAS_910)[1]]
    except OSError as problem:
        found["error"] = problem.strerror or str(problem)
    except ranktable.RankTableError as problem:
        found["error"] = problem.summary
    return found


def _shown(name: str, value: str) -> str:
    return HIDDEN if _SECRET.search(name) and name != "TF_CONFIG" else _without_login(value)


def _without_login(text: str) -> str:
    return _LOGIN.sub(r"\1***@", text)
