"""Subclasses of Estimator or RunConfig.

A subclass passes its run configuration to its base class in its own way, so the rule does not change the base class.
Replace ``tf.estimator.Estimator`` with ``NPUEstimator`` and pass it an ``NPURunConfig``. Replace
``tf.estimator.RunConfig`` with ``NPURunConfig``.

Reported::

    import tensorflow as tf

    class Trainer(tf.estimator.Estimator):
        def __init__(self, model_fn, config):
            super().__init__(model_fn, config=config)

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

from typing import Iterator

from ...syntax.expressions import last_part
from ..base import Context, Finding, Result

CODE = "NPU203"
_NPU = {
    "tensorflow.estimator.Estimator": ("NPUEstimator", " and pass it an NPURunConfig"),
    "tensorflow.estimator.RunConfig": ("NPURunConfig", ""),
}


def check_file(context: Context) -> Iterator[Result]:
    for node, where in context.names.classes:
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
                )
