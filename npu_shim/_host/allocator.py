"""Make TensorFlow keep the memory of CPU tensors and use it again.

By default TensorFlow allocates every tensor with the C library. The memory of a
large tensor returns to the system as soon as it is freed. For the next tensor
the system maps pages one by one and fills them with zeros, which can take a
quarter of a training step. TensorFlow's best-fit allocator, which it uses for
GPUs, keeps its memory, and returns tensors with the same alignment. On the CPU
it is the default with oneDNN, which is on from TensorFlow 2.9. In other
versions an environment variable selects it. TensorFlow reads the variable when
it creates the CPU device of a process, for its first session.
"""

from __future__ import annotations

import os
from typing import Mapping

from npu_shim._host import host_env

ALLOCATOR, LIMIT = "TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB"
_DEFAULT_LIMIT_MB = 1 << 16  # TensorFlow's default; it rejects larger tensors regardless of free memory


def allocator_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to set so that TensorFlow keeps the memory of tensors.

    Args:
        environ: the environment. A value that the user set for TensorFlow's allocator is kept.
    Returns:
        Values by name; none with NPU_SHIM_MEMORY=returned.
    """
    if host_env.read_environment(environ).memory == "returned" or environ.get(ALLOCATOR):
        return {}
    values = {ALLOCATOR: "true"}
    if _machine_memory_mb() > _DEFAULT_LIMIT_MB and not environ.get(LIMIT):
        values[LIMIT] = str(_machine_memory_mb())
    return values


def keeps_memory(environ: Mapping[str, str], tensorflow: str) -> bool:
    """Return True if a version of TensorFlow keeps the memory of tensors with these variables."""
    if environ.get(ALLOCATOR):
        return environ[ALLOCATOR].lower() in ("1", "true")
    version = tuple(int(part) for part in tensorflow.split(".")[:2])
    return version >= (2, 9) and environ.get("TF_ENABLE_ONEDNN_OPTS", "1").lower() in ("1", "true")


def _machine_memory_mb() -> int:
    """Return the memory of the machine in MB."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
