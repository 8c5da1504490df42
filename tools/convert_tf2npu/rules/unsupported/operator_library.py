"""Operators of a script's own library.

``tf.load_op_library`` loads operators that are compiled for GPUs, CPUs or both. None of them has a kernel for the NPU.
An operator with a kernel for the CPU runs on the host, and its tensors are copied there and back in each step. A
library that is linked with CUDA does not load at all on a host without CUDA.

* Replace the operators with those of TensorFlow, if there are any.
* Rebuild the library from its C++ sources alone, without ``-lcudart`` and without ``GOOGLE_CUDA``, if the host is fast
  enough.
* Otherwise write the operators for the NPU, with the vendor's tools.

The rule reports the first library of each file, and scripts that build one with ``nvcc``. With facts of ``npu-shim
observe``, a library that no observed run could load counts as not reached: those runs did without its operators.

Reported::

    import tensorflow as tf

    module = tf.load_op_library('./grouping_so.so')

Reported::

    import os
    import tensorflow as tf

    flags = ' '.join(tf.sysconfig.get_compile_flags())
    os.system('nvcc -c sampling.cu ' + flags)

Untouched::

    import tensorflow as tf

    print(tf.sysconfig.get_compile_flags())

Untouched::

    import tensorflow as tf

    if tf.test.is_built_with_cuda():
        module = tf.load_op_library('./fused_bias_gpu.so')
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_first_call, is_in_test
from ...analysis.gpu_tests import is_test_for_gpu
from ...facts.kinds import VALUE
from ...semantics.model import Call
from ..base import Context, Finding, Question

CODE = "NPU218"
_LOADS = frozenset(
    "tensorflow." + name
    for name in ("load_op_library", "load_library", "python.framework.load_library.load_op_library")
)
_BUILDS = frozenset(
    "tensorflow.sysconfig." + name for name in ("get_include", "get_lib", "get_compile_flags", "get_link_flags")
)
CALLS = _LOADS | _BUILDS


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    names = _LOADS if name in _LOADS else _BUILDS
    if is_in_test(context, call.node) or not is_first_call(context, call, names, context.names.tree, on_npu=False):
        return
    if name in _BUILDS:
        if "nvcc" in context.source.text and _LOADS.isdisjoint(context.called_names.values()):
            yield Finding(
                call.node, "operators for CUDA do not run on the NPU. Build them for the CPU, without nvcc and CUDA"
            )
    elif not any(
        isinstance(parent, ast.If) and is_test_for_gpu(context, parent.test, call.where)
        for parent in context.names.ancestors(call.node)
    ):
        yield Finding(
            call.node,
            "the operators of this library have no kernels for the NPU. Use TensorFlow's, or build them for the CPU: "
            "they then run on the host",
            asks=(Question(VALUE, call.node),),
            unused=all(
                _could_not_be_loaded(context, node) for node, called in context.called_names.items() if called in _LOADS
            ),
        )


def _could_not_be_loaded(context: Context, node: ast.Call) -> bool:
    """Return True if no observed run returned from a call that loads a library, and each handled the error."""
    line = context.source.line_col(context.source.start(node))[0]
    if not context.uses_facts(CODE, line) or context.observed_at(CODE, VALUE, node) is not None:
        return False
    tries = [part for part in context.names.ancestors(node) if isinstance(part, ast.Try)]
    handled = [handler.body[0].lineno for handler in tries[0].handlers] if tries else []
    return any(context.runs_at(number) for number in handled)
