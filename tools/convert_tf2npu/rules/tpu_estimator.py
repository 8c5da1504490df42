"""TPU Estimators are told, and what to write for them.

A ``TPUEstimator`` takes its batch size, its host calls and its metrics in forms of its own, which its
``input_fn`` and ``model_fn`` follow. It becomes an NPUEstimator by hand.

Untouched::

    import tensorflow.compat.v1 as tf

    estimator = tf.estimator.tpu.TPUEstimator(model_fn=model_fn, config=run_config, use_tpu=False)

Untouched::

    import tensorflow as tf

    estimator = tf.contrib.tpu.TPUEstimator(model_fn=model_fn, config=run_config, use_tpu=False)
"""
from __future__ import annotations

from typing import Iterator, Optional

from ..registry import Context, Finding, Result
from ..scopes import Call

CODE = 'NPU202'
_ADVICE = {
    'TPUEstimator': 'write NPUEstimator(model_fn, config=NPURunConfig(...), params=...), with the '
                    'batch size among params',
    'RunConfig': 'write NPURunConfig(...); tpu_config.iterations_per_loop is its own argument '
                 'iterations_per_loop',
    'TPUEstimatorSpec': 'write NPUEstimatorSpec(...), with eval_metric_ops=metric_fn(*tensors) for '
                        'eval_metrics; host_call stays',
    'CrossShardOptimizer': 'leave it out on one device',
}
CALLS = frozenset(root + name for name in _ADVICE
                  for root in ('tensorflow.estimator.tpu.', 'tensorflow.contrib.tpu.',
                               'tensorflow.tpu.'))


def check_call(context: Context, call: Call, name: Optional[str]) -> Iterator[Result]:
    short = (name or '').rsplit('.', 1)[1]
    yield Finding(call.node, 'tpu.%s has no meaning on an NPU; %s' % (short, _ADVICE[short]))
