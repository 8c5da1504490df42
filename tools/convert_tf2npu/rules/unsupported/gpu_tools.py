"""Tools and settings for NVIDIA GPUs.

These need a GPU or have no effect on an NPU:

* NVIDIA DALI decodes and augments on a GPU. Write the input with ``tf.data``, which runs on the host.
* NVTX marks ranges for NVIDIA's profiler. Remove the marks and profile the NPU with ``profiling_mode``.
* ``nvidia-smi``, ``pynvml`` and ``GPUtil`` ask for GPUs. ``npu-smi info`` shows the NPUs.
* ``TF_ENABLE_AUTO_MIXED_PRECISION`` and its kind switch on half precision for GPUs. Set
  ``precision_mode='allow_mix_precision'`` for the NPU.
* ``TF_CUDNN_DETERMINISTIC``: set ``deterministic=1`` for the NPU.
* Other variables of cuDNN, cuBLAS, NCCL and GPU threads: remove them, or look for the NPU's own options in the list of
  ``npu-shim options``.

The rule reports each kind once for each file. Imports and commands whose failure the script catches are not reported.
``CUDA_VISIBLE_DEVICES`` and settings of GPU memory have no effect either, and are harmless (see NPU120).

Reported::

    import tensorflow as tf
    import nvidia.dali.plugin.tf as dali_tf

    dataset = dali_tf.DALIDataset(pipeline)

Reported::

    import os
    import tensorflow as tf

    os.environ['TF_ENABLE_AUTO_MIXED_PRECISION'] = '1'

Reported::

    import subprocess
    import tensorflow as tf

    memory = subprocess.check_output(['nvidia-smi', '--query-gpu=memory.used', '--format=csv'])

Untouched::

    import os
    import tensorflow as tf

    os.environ['CUDA_VISIBLE_DEVICES'] = '0'
    os.environ['TF_ENABLE_AUTO_MIXED_PRECISION'] = '0'

Untouched::

    import subprocess
    import tensorflow as tf

    try:
        import pynvml
        print(subprocess.check_output('nvidia-smi'))
    except Exception:
        pynvml = None
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.device_placement import in_test
from ...syntax.expressions import constant
from ..base import Context, Finding, Result

CODE = "NPU249"
_SMI = "asks for NVIDIA GPUs. Use npu-smi info"
_PACKAGES = {
    "nvidia.dali": "reads data on a GPU. Write the input with tf.data",
    "nvtx": "marks ranges for NVIDIA's profiler. Remove it and profile with profiling_mode",
    **dict.fromkeys(("pynvml", "py3nvml", "GPUtil", "nvidia_smi", "gpustat", "nvgpu"), _SMI),
}
_NONE = "has no effect on the NPU. "
_VARIABLES = {
    r"TF_ENABLE_AUTO_MIXED_PRECISION\w*|TF_AUTO_MIXED_PRECISION\w*": _NONE + "Set precision_mode='allow_mix_precision'",
    r"TF_CUDNN_DETERMINISTIC": _NONE + "Set deterministic=1",
    r"(?:TF_CUDNN|TF_GPU(?!_ALLOCATOR)|TF_ENABLE_CU|TF_DISABLE_CU|TF_USE_CUDNN|CUDNN|CUBLAS|NCCL|NVIDIA_TF32)_\w+"
    r"|TF_ENABLE_WINOGRAD_NONFUSED|TF_AUTOTUNE_THRESHOLD|CUDA_(?!VISIBLE_DEVICES|DEVICE_ORDER)\w+": _NONE + "Remove it",
}
_SUSPECT = re.compile("nvidia|nvtx|nvml|GPUtil|gpustat|nvgpu|" + "|".join(_VARIABLES))
_COMMANDS = re.compile(r"(?:os|subprocess)\.\w+\Z")


def check_file(context: Context) -> Iterator[Result]:
    if not _SUSPECT.search(context.source.text):
        return
    reported: set[str] = set()
    for node, subject, message in sorted(_found(context), key=lambda each: context.source.start(each[0])):
        if message not in reported and not in_test(context, node):
            reported.add(message)
            yield Finding(node, f"{subject} {message}")


def _found(context: Context) -> Iterator[tuple[ast.AST, str, str]]:
    """Yield the places, what they use, and the messages."""
    for statement, where in context.names.places.items():
        if isinstance(statement, (ast.Import, ast.ImportFrom)) and not _is_caught(context, statement):
            for module in _modules(statement):
                package = next((p for p in _PACKAGES if module == p or module.startswith(p + ".")), None)
                if package is not None:
                    yield statement, package, _PACKAGES[package]
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
            target = statement.targets[0]
            key = target.slice.value if type(target.slice).__name__ == "Index" else target.slice  # type: ignore[attr-defined]
            if context.resolve(target.value, where) == "os.environ":
                yield from _variable(statement, key, statement.value)
    for call in context.names.calls:
        name, given = context.called.get(call.node, ""), call.node.args
        if name in ("os.environ.setdefault", "os.putenv") and len(given) == 2:
            yield from _variable(call.node, given[0], given[1])
        elif _COMMANDS.match(name) and given and _runs_smi(given[0]) and not _is_caught(context, call.node):
            yield call.node, "nvidia-smi", _SMI


def _variable(node: ast.AST, key: ast.AST, value: ast.AST) -> Iterator[tuple[ast.AST, str, str]]:
    name = (constant(key) or ("",))[0]
    if isinstance(name, str) and constant(value) not in (("0",), ("",)):
        message = next((message for pattern, message in _VARIABLES.items() if re.fullmatch(pattern, name)), None)
        if message is not None:
            yield node, name, message


def _modules(statement: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    return [f"{statement.module}.{alias.name}" for alias in statement.names] if not statement.level else []


def _runs_smi(command: ast.expr) -> bool:
    first = command.elts[0] if isinstance(command, (ast.List, ast.Tuple)) and command.elts else command
    text = (constant(first) or ("",))[0]
    return isinstance(text, str) and bool(re.match(r"(?:\S*/)?nvidia-smi\b", text))


def _is_caught(context: Context, node: ast.AST) -> bool:
    """Return True if the script catches the failure of a node."""
    inner = node
    for parent in context.names.ancestors(node):
        if isinstance(parent, ast.Try) and inner in parent.body and parent.handlers:
            return True
        inner = parent
    return False
