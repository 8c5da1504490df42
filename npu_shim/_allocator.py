"""Memory of tensors on the CPU: kept for the next ones, not given back to the system after each.

TensorFlow asks the C library for every tensor. A large one goes back to the
system as soon as it is freed, and the system makes the next one of single
pages, each filled with zeros first, which can take a quarter of a training
step. TensorFlow's own best-fit allocator, the one that it has for GPUs, keeps
what it once got, and gives the same tensors at the same alignment. The CPU has
it too where oneDNN is on, as it is from TensorFlow 2.9 on by default;
elsewhere a variable chooses it, which TensorFlow reads when it makes the CPU
device of a process, for its first session.
"""

from __future__ import annotations

import os
from typing import Mapping

from npu_shim import _env

ALLOCATOR, LIMIT = "TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB"
_DEFAULT_LIMIT_MB = 1 << 16  # TensorFlow's; it refuses a tensor beyond, however much memory there is


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables to be set for this process, so that TensorFlow keeps the memory of tensors.

    Args:
        environ: what is set. What the user says there of TensorFlow's allocator is left as it is.
    Returns:
        Values by name; none with NPU_SHIM_MEMORY=returned.
    """
    if _env.read(environ).memory == "returned" or environ.get(ALLOCATOR):
        return {}
    made = {ALLOCATOR: "true"}
    if _memory_mb() > _DEFAULT_LIMIT_MB and not environ.get(LIMIT):
        made[LIMIT] = str(_memory_mb())
    return made


def keeps(environ: Mapping[str, str], tensorflow: str) -> bool:
    """Whether this version of TensorFlow keeps the memory of tensors, with these variables."""
    if environ.get(ALLOCATOR):
        return environ[ALLOCATOR].lower() in ("1", "true")
    version = tuple(int(part) for part in tensorflow.split(".")[:2])
    return version >= (2, 9) and environ.get("TF_ENABLE_ONEDNN_OPTS", "1").lower() in ("1", "true")


def _memory_mb() -> int:
    """Of the machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
