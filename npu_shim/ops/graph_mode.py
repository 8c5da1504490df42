"""Functions of the vendor that only work in graph mode."""

from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar, cast

from npu_shim._tensorflow.tf_api import tf

_Function = TypeVar("_Function", bound=Callable[..., Any])


def only_in_graphs(module: str) -> Callable[[_Function], _Function]:
    """Return a decorator: the function raises RuntimeError in eager code.

    Args:
        module: the vendor's module, as "npu_bridge.estimator.npu_ops".
    """

    def decorate(function: _Function) -> _Function:
        name = f"{module.rpartition('.')[2]}.{function.__name__}"

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            if tf.executing_eagerly():
                raise RuntimeError(
                    f"{name} works in graph mode: call tf.compat.v1.disable_eager_execution() at the start of the "
                    "script, or call it inside a tf.function."
                )
            return function(*args, **kwargs)

        return cast(_Function, called)

    return decorate
