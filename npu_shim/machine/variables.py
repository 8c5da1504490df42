"""The environment variables that training depends on, their contradictions, and the rank table."""
from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, Mapping, Optional

from npu_shim import _env

# Of the vendor's runtime, of TensorFlow on the CPU, and of how either is found
_PREFIXES = ("ASCEND_", "HCCL_", "NPU_", "CM_", "GE_", "DUMP_", "PROFILING_", "TE_", "ENABLE_", "OPTION_EXEC_",
             "TF_XLA_", "TF_CPP_", "TF_NUM_", "TF_ENABLE_", "OMP_", "KMP_")
_NAMES = ("AOE_MODE", "FUSION_TENSOR_SIZE", "PRINT_MODEL", "POD_NAME", "SOC_VERSION", "RESTORE_FROM", "STEP_NOW",
          "TOTAL_STEP", "LOSS_NOW", "TARGET_LOSS", "LOCAL_CHECKPOINT_DIR", "SLOG_PRINT_TO_STDOUT", "DEVICE_INDEX",
          "RANK_INDEX", "SERVER_ID", "CUDA_VISIBLE_DEVICES", "TF_USE_LEGACY_KERAS", "TF_DETERMINISTIC_OPS",
          "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD")
_SECRET = re.compile(r"TOKEN|SECRET|PASS|CREDENTIAL|(^|_)KEY(_|$)|AUTH")
_LOGIN = re.compile(r"(://)[^/@\s]+@")
HIDDEN = "(set, not shown)"


def variables(environ: Mapping[str, str] = os.environ) -> Dict[str, Any]:
    """What is set of what matters, what is not, and what contradicts itself.

    Args:
        environ: where to read.
    Returns:
        ``set``: values by name, without secrets; ``not_set``: names that npu_shim reads; ``rank_size``, None
        where it is not known; ``error``: the first contradiction, None where there is none.
    """
    found = {name: _shown(name, value) for name, value in sorted(environ.items())
             if name in _env.VARIABLES or name in _NAMES or name.startswith(_PREFIXES)}
    made: Dict[str, Any] = {"set": found, "not_set": [name for name in _env.VARIABLES if not environ.get(name)],
                            "rank_size": None, "error": None}
    try:
        made["rank_size"] = _env.read(environ).rank_size
    except ValueError as error:
        made["error"] = _without_login(str(error))
    return made


def rank_table(environ: Mapping[str, str] = os.environ) -> Optional[Dict[str, Any]]:
    """The file that RANK_TABLE_FILE names, and what is wrong with reading it; None where it names none."""
    path = environ.get("RANK_TABLE_FILE", "").strip()
    if not path:
        return None
    error = None
    try:
        with open(path, encoding="utf-8") as stream:
            if not isinstance(json.load(stream), dict):
                error = "it holds no JSON object"
    except OSError as problem:
        error = problem.strerror or str(problem)
    except ValueError as problem:  # no JSON, or no text
        error = f"it is not JSON ({problem})"
    return {"path": path, "error": error}


def _shown(name: str, value: str) -> str:
    return HIDDEN if _SECRET.search(name) and name != "TF_CONFIG" else _without_login(value)


def _without_login(text: str) -> str:
    return _LOGIN.sub(r"\1***@", text)
