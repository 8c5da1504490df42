"""NPUEstimatorSpec: an EstimatorSpec with a function that is called on the host in every step."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from npu_shim import _tf
from npu_shim.config.placeholder import needs_estimator

_API: Any = _tf.estimator()


def check_host_call(host_call: Any) -> None:
    """Checks host_call as the vendor does.

    Raises:
        ValueError: it is no pair, or its second item is no list, tuple or dict.
        TypeError: its first item cannot be called.
        RuntimeError: the function takes another number of arguments.
    """
    if not isinstance(host_call, (tuple, list)):
        raise ValueError(f"host_call={host_call!r} is not allowed: it must be a pair (function, tensors).")
    if len(host_call) != 2:
        raise ValueError(f"host_call has {len(host_call)} items, but must be a pair (function, tensors).")
    function, tensors = host_call
    if not callable(function):
        raise TypeError(f"host_call[0]={function!r} is not allowed: it must be a function.")
    if not isinstance(tensors, (tuple, list, dict)):
        raise ValueError(f"host_call[1]={tensors!r} is not allowed: it must be a list, tuple or dict of tensors.")
    _check_count(function, tensors)


def _check_count(function: Callable, tensors: Any) -> None:
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return
    required = sum(p.default is p.empty for p in parameters)
    if not required <= len(tensors) <= len(parameters):
        raise RuntimeError(
            f"host_call gives {len(tensors)} tensors, but its function takes {len(parameters)} arguments: "
            "give one tensor for each."
        )


if _API is not None:

    class NPUEstimatorSpec(_API.EstimatorSpec):
        """What a model_fn returns: an EstimatorSpec with host_call.

        Args:
            mode, predictions, loss, train_op, eval_metric_ops, export_outputs,
                training_chief_hooks, training_hooks, scaffold,
                evaluation_hooks, prediction_hooks: as in tf.estimator.EstimatorSpec.
            host_call: a pair (function, tensors). The function gets the
                tensors, by position for a list and by name for a dict. What it
                builds from them (summaries, for example) runs in every training
                and evaluation step; a function that builds nothing is called
                after every step with the values as numpy arrays.
        Raises:
            ValueError, TypeError, RuntimeError: host_call is not such a pair.
        """

        def __new__(
            cls,
            mode: str,
            predictions: Any = None,
            loss: Any = None,
            train_op: Any = None,
            eval_metric_ops: Any = None,
            export_outputs: Any = None,
            training_chief_hooks: Any = None,
            training_hooks: Any = None,
            scaffold: Any = None,
            evaluation_hooks: Any = None,
            prediction_hooks: Any = None,
            host_call: Any = None,
        ) -> NPUEstimatorSpec:
            if host_call is not None:
                check_host_call(host_call)
            self = super().__new__(
                cls,
                mode=mode,
                predictions=predictions,
                loss=loss,
                train_op=train_op,
                eval_metric_ops=eval_metric_ops,
                export_outputs=export_outputs,
                training_chief_hooks=training_chief_hooks,
                training_hooks=training_hooks,
                scaffold=scaffold,
                evaluation_hooks=evaluation_hooks,
                prediction_hooks=prediction_hooks,
            )
            self.host_call = host_call
            return self

        def _replace(self, **kwds: Any) -> NPUEstimatorSpec:
            """As EstimatorSpec's, and keeps host_call."""
            host_call: Any | None = kwds.pop("host_call", self.host_call)
            fields = super()._replace(**kwds)
            return NPUEstimatorSpec(**dict(zip(fields._fields, fields)), host_call=host_call)

else:
    NPUEstimatorSpec = needs_estimator("NPUEstimatorSpec", "What a model_fn returns: an EstimatorSpec with host_call.")  # type: ignore[misc,assignment]
