"""Tools and settings for NVIDIA GPUs.

These need a GPU or have no effect on an NPU:

* NVIDIA DALI decodes and augments on a GPU. Write the input with ``tf.data``, which runs on the host.
* CuPy computes on a GPU. Use NumPy or TensorFlow.
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

    import cupy as cp
    import tensorflow as tf

    x = tf.constant(cp.asnumpy(cp.zeros(8)))

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

from ...analysis.device_placement import is_in_test
from ...semantics.model import Where
from ...syntax.expressions import boxed_constant, constant_or, index_of, last_name
from ..base import Context, Finding

CODE = "NPU249"
_SMI = "{0} asks for NVIDIA GPUs. Use npu-smi info"
_PACKAGES = {
    "nvidia.dali": "{0} reads data on a GPU. Write the input with tf.data",
    "cupy": "{0} computes on a GPU. Use NumPy or TensorFlow",
    "nvtx": "{0} marks ranges for NVIDIA's profiler. Remove it and profile with profiling_mode",
    **dict.fromkeys(("pynvml", "py3nvml", "GPUtil", "nvidia_smi", "gpustat", "nvgpu"), _SMI),
}
_NONE = "{0} has no effect on the NPU. Remove it"
_VARIABLES = {
    r"TF_ENABLE_AUTO_MIXED_PRECISION\w*|TF_AUTO_MIXED_PRECISION\w*": "{0} has no effect on the NPU. "
    "Set precision_mode='allow_mix_precision'",
    r"TF_CUDNN_DETERMINISTIC": "{0} has no effect on the NPU. Set deterministic=1",
    r"(?:TF_CUDNN|TF_GPU(?!_ALLOCATOR)|TF_ENABLE_CU|TF_DISABLE_CU|TF_USE_CUDNN|CUDNN|CUBLAS|NCCL|NVIDIA_TF32)_\w+"
    r"|TF_ENABLE_WINOGRAD_NONFUSED|TF_AUTOTUNE_THRESHOLD|CUDA_(?!VISIBLE_DEVICES|DEVICE_ORDER)\w+": _NONE,
}
_COMMANDS = ("os.", "subprocess.")
_SETTERS = frozenset({"os.environ.setdefault", "os.putenv"})


def check_file(context: Context) -> Iterator[Finding]:
    reported: set[str] = set()
    for node, subject, message in sorted(
        _uses_with_messages(context), key=lambda place: context.source.start(place[0])
    ):
        if message not in reported and not is_in_test(context, node):
            reported.add(message)
            yield Finding(node, message, subject)


def _uses_with_messages(context: Context) -> Iterator[tuple[ast.AST, str, str]]:
    """Yield the places, what they use, and the messages."""
    for statement, where in context.names.places.items():
        kind = type(statement)  # faster than isinstance, for each statement of a project
        if kind is ast.Import or kind is ast.ImportFrom:
            for package in filter(None, map(_nvidia_package, _imported_modules(statement))):
                if not _is_caught(context, statement):
                    yield statement, package, _PACKAGES[package]
        elif kind is ast.Assign and isinstance(statement.targets[0], ast.Subscript):  # type: ignore[attr-defined]
            assert isinstance(statement, ast.Assign)
            yield from _messages_on_environ_assignment(context, statement, statement.targets[0], where)
    for call, name in context.called_names.items():
        if name.startswith(_COMMANDS) and call.args:
            if name in _SETTERS and len(call.args) == 2:
                yield from _messages_on_variable(call, call.args[0], call.args[1])
            elif _runs_smi(call.args[0]) and not _is_caught(context, call):
                yield call, "nvidia-smi", _SMI


def _messages_on_environ_assignment(
    context: Context, statement: ast.Assign, target: ast.Subscript, where: Where
) -> Iterator[tuple[ast.AST, str, str]]:
    if last_name(target.value) == "environ" and context.resolve(target.value, where) == "os.environ":
        yield from _messages_on_variable(statement, index_of(target), statement.value)


def _messages_on_variable(node: ast.AST, key: ast.AST, value: ast.AST) -> Iterator[tuple[ast.AST, str, str]]:
    name = constant_or(key, "")
    if isinstance(name, str) and boxed_constant(value) not in (("0",), ("",)):
        message = next((message for pattern, message in _VARIABLES.items() if re.fullmatch(pattern, name)), None)
        if message is not None:
            yield node, name, message


def _imported_modules(statement: ast.AST) -> list[str]:
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    assert isinstance(statement, ast.ImportFrom)
    return [f"{statement.module}.{alias.name}" for alias in statement.names] if not statement.level else []


def _nvidia_package(module: str) -> str | None:
    """Return the package of NVIDIA that a module belongs to, or None."""
    root = module.partition(".")[0]
    package = "nvidia.dali" if root == "nvidia" and module.startswith("nvidia.dali") else root
    return package if package in _PACKAGES else None


def _runs_smi(command: ast.expr) -> bool:
    first = command.elts[0] if isinstance(command, (ast.List, ast.Tuple)) and command.elts else command
    text = constant_or(first, "")
    return isinstance(text, str) and bool(re.match(r"(?:\S*/)?nvidia-smi\b", text))


def _is_caught(context: Context, node: ast.AST) -> bool:
    """Return True if the script catches the failure of a node."""
    inner = node
    for parent in context.names.ancestors(node):
        if isinstance(parent, ast.Try) and inner in parent.body and parent.handlers:
            return True
        inner = parent
    return False
