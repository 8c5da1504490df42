"""Classes made from Estimator or RunConfig.

A class whose base is ``tf.estimator.Estimator`` passes its run configuration on in ways of its own, so
that its base is changed by hand.

Told::

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

from ..base import Context, Finding, Result

CODE = "NPU203"
_NPU = {
    "tensorflow.estimator.Estimator": ("NPUEstimator", " and give it an NPURunConfig"),
    "tensorflow.estimator.RunConfig": ("NPURunConfig", ""),
}


def check_file(context: Context) -> Iterator[Result]:
    for node, where in context.names.classes:
        for base in node.bases:
            found = _NPU.get(context.resolve(base, where) or "")
            if found:
                yield Finding(base, "%s keeps its base; write class %s(%s)%s" % ((node.name, node.name) + found))
