"""Functions of the vendor that only work in graph mode."""

from __future__ import annotations

import functools
import inspect
from typing import Callable, TypeVar, cast

from npu_shim._tensorflow.tf_api import tf

IN_GRAPHS = "It works in graph mode, and raises RuntimeError in eager mode."
_Function = TypeVar("_Function", bound=Callable[..., object])


def only_in_graphs(path: str) -> Callable[[_Function], _Function]:
    """Return a decorator: the function raises RuntimeError in eager code.

    Args:
        path: the vendor's name of the function, as "npu_ops.LARS". Its documentation is that of the function, and
            says so.
    """

    def decorate(function: _Function) -> _Function:

        @functools.wraps(function)
        def called(*args: object, **kwargs: object) -> object:
            if tf.executing_eagerly():
                raise RuntimeError(
                    f"{path} works in graph mode: call tf.compat.v1.disable_eager_execution() at the start of the "
                    "script, or call it inside a tf.function."
                )
            return function(*args, **kwargs)

        called.__name__ = called.__qualname__ = path.rpartition(".")[2]
        called.__doc__ = f"{inspect.getdoc(function)}\n\n{IN_GRAPHS}\n"
        return cast(_Function, called)

    return decorate
