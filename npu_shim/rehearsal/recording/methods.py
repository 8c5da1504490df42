"""Replace methods of a class and of all its subclasses, those that are defined later included."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, List, Tuple

from npu_shim._tensorflow import tf_keras

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Function, Gradient, Optimizer, Result, Structure, Variable

    Pairs = List[Tuple[Gradient, Variable]]

Around = Callable[..., Any]  # called with the original method, the object, and the arguments of the call


class Optimizers:
    """Functions around the methods of optimizers that apply gradients. Subclasses say what is done around an update."""

    def apply_gradients(
        self, original: Function, optimizer: Optimizer, grads_and_vars: Any, *args: object, **kwargs: object
    ) -> Result:
        """Do what is done around an update of apply_gradients()."""
        pairs = list(grads_and_vars)
        is_reduced = kwargs.get("experimental_aggregate_gradients") is False or kwargs.get("skip_gradients_aggregation")
        return self._around(optimizer, pairs, lambda: original(optimizer, pairs, *args, **kwargs), bool(is_reduced))

    def apply(
        self,
        original: Function,
        optimizer: Optimizer,
        grads: Structure,
        trainable_variables: Structure = None,
        **kwargs: object,
    ) -> Result:
        """Do what is done around an update of apply(), which Keras 3 has."""
        given = trainable_variables
        used = tf_keras.built_variables(optimizer) if given is None else given
        return self._around(optimizer, list(zip(grads, used)), lambda: original(optimizer, grads, given, **kwargs))

    def _around(self, optimizer: Optimizer, pairs: Pairs, apply: Callable[[], Any], is_reduced: bool = False) -> Any:
        """Call apply(). `is_reduced` is False if it reduces the gradients over the replicas first."""
        raise NotImplementedError


def wrap(owner: type, names: tuple[str, ...], around: Around) -> None:
    """Put a function around methods.

    Args:
        owner: a class. Subclasses that define a method of the same name get the function around theirs, too.
        names: names of methods.
        around: around(original, self, *args, **kwargs) is called instead of original(self, *args, **kwargs).
    """
    _wrap_own(owner, names, around)
    subclasses: list[type] = type.__subclasses__(owner)
    for subclass in subclasses:
        wrap(subclass, names, around)
    inherited = owner.__dict__.get("__init_subclass__")

    def init_subclass(cls: type, **kwargs: object) -> None:
        if inherited is not None:
            inherited.__get__(None, cls)(**kwargs)
        else:
            getattr(super(owner, cls), "__init_subclass__")(**kwargs)
        _wrap_own(cls, names, around)

    setattr(owner, "__init_subclass__", classmethod(init_subclass))


def _wrap_own(owner: type, names: tuple[str, ...], around: Around) -> None:
    for name in names:
        original = getattr(owner, name, None)  # its own, or that of a class beside the wrapped one
        if inspect.isfunction(original) and around not in getattr(original, "npu_shim_arounds", ()):
            setattr(owner, name, _around(original, around))


def _around(original: Function, around: Around) -> Function:
    @functools.wraps(original)
    def method(self: Any, *args: object, **kwargs: object) -> Result:
        return around(original, self, *args, **kwargs)

    method.npu_shim_original = original  # type: ignore[attr-defined]
    # a mark against wrapping twice with the same function
    method.npu_shim_arounds = (around, *getattr(original, "npu_shim_arounds", ()))  # type: ignore[attr-defined]
    return method
