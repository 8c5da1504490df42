"""Replace methods of a class and of all its subclasses, those that are defined later included."""

from __future__ import annotations

import functools
import inspect

from npu_shim._tensorflow.types import Function, Result

Around = Function  # called with the original method, the object, and the arguments of the call


def wrap_methods(owner: type, names: tuple[str, ...], around: Around) -> None:
    """Put a function around methods.

    Args:
        owner: a class. Subclasses that define a method of the same name get the function around theirs, too.
        names: names of methods.
        around: around(original, self, *args, **kwargs) is called instead of original(self, *args, **kwargs).
    """
    _wrap_own_methods(owner, names, around)
    subclasses: list[type] = type.__subclasses__(owner)
    for subclass in subclasses:
        wrap_methods(subclass, names, around)
    inherited = owner.__dict__.get("__init_subclass__")

    def init_subclass(cls: type, **kwargs: object) -> None:
        if inherited is not None:
            inherited.__get__(None, cls)(**kwargs)
        else:
            getattr(super(owner, cls), "__init_subclass__")(**kwargs)
        _wrap_own_methods(cls, names, around)

    setattr(owner, "__init_subclass__", classmethod(init_subclass))


def _wrap_own_methods(owner: type, names: tuple[str, ...], around: Around) -> None:
    for name in names:
        original = getattr(owner, name, None)  # its own, or that of a class beside the wrapped one
        if inspect.isfunction(original) and around not in getattr(original, "npu_shim_arounds", ()):
            if name not in owner.__dict__:
                original = _method_of_bases(owner, name, original)
            setattr(owner, name, _wrap_method(original, around))


def _method_of_bases(owner: type, name: str, template: Function) -> Function:
    """Return a method of the classes above as they are when it is called: Keras replaces some of them."""

    @functools.wraps(template)
    def method(self: object, *args: object, **kwargs: object) -> Result:
        return getattr(super(owner, self), name)(*args, **kwargs)

    return method


def _wrap_method(original: Function, around: Around) -> Function:
    @functools.wraps(original)
    def method(self: object, *args: object, **kwargs: object) -> Result:
        return around(original, self, *args, **kwargs)

    # Keras 3 asks for it with and without unwrapping, and the two must be equal
    method.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    method.npu_shim_original = original  # type: ignore[attr-defined]
    # a mark against wrapping twice with the same function
    method.npu_shim_arounds = (around, *getattr(original, "npu_shim_arounds", ()))  # type: ignore[attr-defined]
    return method
