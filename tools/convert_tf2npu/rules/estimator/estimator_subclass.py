"""Subclasses of Estimator or RunConfig.

A subclass passes its run configuration to its base class in its own way, so the rule does not change the base class.
Replace ``tf.estimator.Estimator`` with ``NPUEstimator`` and pass it an ``NPURunConfig``. Replace
``tf.estimator.RunConfig`` with ``NPURunConfig``. A subclass of ``TPUEstimator`` passes its base class ``use_tpu=False``
and a configuration for the NPU. With facts of ``npu-shim observe``, a class of which no method ran counts as not
reached.

Reported::

    import tensorflow as tf

    class Trainer(tf.estimator.Estimator):
        def __init__(self, model_fn, config):
            super().__init__(model_fn, config=config)

Reported::

    import tensorflow.compat.v1 as tf

    class Trainer(tf.estimator.tpu.TPUEstimator):
        def __init__(self, model_fn, config, use_tpu):
            super().__init__(model_fn, config=config, use_tpu=use_tpu, train_batch_size=8)

Untouched::

    import tensorflow as tf
    from sklearn.base import Estimator

    class Trainer(Estimator):
        pass

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    class Trainer(NPUEstimator):
        pass
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...syntax.expressions import last_part
from ..base import Context, Finding

CODE = "NPU203"
_NPU = {
    "tensorflow.estimator.Estimator": ("NPUEstimator", " and pass it an NPURunConfig"),
    "tensorflow.estimator.RunConfig": ("NPURunConfig", ""),
}
_TPU_ESTIMATORS = frozenset({"tensorflow.estimator.tpu.TPUEstimator", "tensorflow.contrib.tpu.TPUEstimator"})


def check_file(context: Context) -> Iterator[Finding]:
    for node, where in context.names.classes:
        made_by = [member for member in node.body if isinstance(member, ast.FunctionDef) and member.name == "__init__"]
        unused = bool(made_by) and context.runs_at(_first_line(made_by[-1])) == 0
        for base in node.bases:
            name = context.resolve(base, where) or ""
            if name in _NPU:
                new, more = _NPU[name]
                yield Finding(
                    base,
                    "{0} is a subclass of {1}. Write class {2}({3}){4}",
                    node.name,
                    last_part(name),
                    node.name,
                    new,
                    more,
                    unused=unused,
                )
            elif name in _TPU_ESTIMATORS:
                yield Finding(
                    base,
                    "{0} is a subclass of TPUEstimator. Pass its base class use_tpu=False and "
                    "config=npu_run_config_init(run_config=config)",
                    node.name,
                    unused=unused,
                )


def _first_line(method: ast.FunctionDef) -> int:
    """Return the first line of what a method does: that of its second statement behind a docstring."""
    return method.body[bool(ast.get_docstring(method)) and len(method.body) > 1].lineno
