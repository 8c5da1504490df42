"""NPUEstimatorSpec: an EstimatorSpec with a host_call, a function that runs on the host in every step."""

from __future__ import annotations

import inspect
from typing import Callable, Sequence, Sized

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import EstimatorModule, Operation, Scaffold, SessionRunHook, Structure, Tensor
from npu_shim.config.placeholder import make_placeholder_class

_API: EstimatorModule = tf_api.estimator_namespace()


def check_host_call(host_call: object) -> None:
    """Check host_call as the vendor's class does.

    Raises:
        ValueError: if it is not a pair, or its second item is not a list, tuple or dict.
        TypeError: if its first item is not callable.
        RuntimeError: if the function takes another number of arguments.
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
    _check_argument_count(function, tensors)


def _check_argument_count(function: Callable[..., object], tensors: Sized) -> None:
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return
    required = sum(p.default is p.empty for p in parameters)
    if not required <= len(tensors) <= len(parameters):
        raise RuntimeError(
            f"host_call has {len(tensors)} tensors, but its function takes {len(parameters)} arguments. "
            "Give one tensor for each."
        )


if _API is not None:

    class NPUEstimatorSpec(_API.EstimatorSpec):
        """The result of a model_fn: an EstimatorSpec with host_call.

        Args:
            mode, predictions, loss, train_op, eval_metric_ops, export_outputs,
                training_chief_hooks, training_hooks, scaffold,
                evaluation_hooks, prediction_hooks: as in tf.estimator.EstimatorSpec.
            host_call: a pair (function, tensors). The function gets the
                tensors by position for a list and by name for a dict. The ops
                that it builds from them, such as summaries, run in every
                training and evaluation step. A function that builds nothing is
                called after every step with the values as numpy arrays.
        Raises:
            ValueError, TypeError, RuntimeError: if host_call is not such a pair.
        """

        def __new__(
            cls,
            mode: str,
            predictions: Tensor | dict[str, Tensor] | None = None,
            loss: Tensor | None = None,
            train_op: Operation | None = None,
            eval_metric_ops: dict[str, Structure] | None = None,
            export_outputs: dict[str, object] | None = None,
            training_chief_hooks: Sequence[SessionRunHook] | None = None,
            training_hooks: Sequence[SessionRunHook] | None = None,
            scaffold: Scaffold | None = None,
            evaluation_hooks: Sequence[SessionRunHook] | None = None,
            prediction_hooks: Sequence[SessionRunHook] | None = None,
            host_call: tuple[Callable[..., Structure], Structure] | None = None,
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

        def _replace(self, **kwds: Structure) -> NPUEstimatorSpec:
            """Return a copy with some fields replaced, as EstimatorSpec does. It keeps host_call."""
            host_call = kwds.pop("host_call", self.host_call)
            fields = super()._replace(**kwds)
            return NPUEstimatorSpec(**dict(zip(fields._fields, fields)), host_call=host_call)

else:
    _DOC = "The result of a model_fn: an EstimatorSpec with host_call."
    NPUEstimatorSpec = make_placeholder_class("NPUEstimatorSpec", _DOC)  # type: ignore[misc,assignment]
