"""Values that a function of a script reads from outside: those that other code may change, and lists of tensors.

A graph keeps what Python read when the graph was made.
"""

from __future__ import annotations

import argparse
import inspect
import types
from typing import Iterator

import numpy as np

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import Value
from npu_shim.rehearsal.observing.plain_layers import (
    is_of_script,
    is_wrapper_of_keras,
    names_in,
    runs_no_script_code,
)

tf = tf_api.tf
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range, np.generic, np.dtype)
_BUILT_IN = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)
_LAYERS = (tf.keras.layers.Layer, tf.keras.metrics.Metric)
_OF_LAYERS = frozenset({"__call__", "call", "compute_mask", "result", "update_state"})  # methods that their call runs
_NAMESPACES = (argparse.Namespace, types.SimpleNamespace)
# Methods with two underscores that no operator and no attribute runs.
_CALLED = frozenset(
    f"__{name}__"
    for name in "init new call repr str enter exit del hash eq post_init init_subclass getstate setstate reduce".split()
)


def lists_read(function: Value) -> frozenset[str] | None:
    """Return the names of the lists and dictionaries that a function of a script, or one that it calls, reads.

    Args:
        function: or a method.
    Returns:
        None if it may read a value that changes in another way than by an assignment to a name or an attribute.
    """
    reading = _Reading()
    reading.add("", function)
    return None if reading.may_change else frozenset(reading.lists)


def lists_read_by_call(value: Value, attributes: frozenset[str]) -> frozenset[str] | None:
    """Return the same for the call of a layer or a metric that reads some attributes.

    None, too, if it may call an object of the script that is no layer: only of layers the code has been looked at.
    """
    reading = _Reading(attributes | _OF_LAYERS, of_layer=True)
    reading.add_holder(value)
    return None if reading.may_change else frozenset(reading.lists)


class _Reading:
    """The values that functions read: of global names, closures and defaults, and attributes of them."""

    def __init__(self, words: frozenset[str] = frozenset(), of_layer: bool = False) -> None:
        self.may_change = False
        self._of_layer = of_layer
        self.lists: set[str] = set()
        self._words = set(words)  # of all functions; an attribute with one of them may be read
        self._holders: list[Value] = []  # objects, classes and modules of the script
        self._seen: set[int] = set()

    def add(self, name: str, value: Value) -> None:
        if isinstance(value, types.MethodType):
            self.add(name, value.__self__)
            value = value.__func__
        if isinstance(value, (list, tuple, dict, set)):
            self._add_container(name, value)
        if isinstance(value, (*_PLAIN, *_BUILT_IN, list, tuple, dict, set)) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, types.FunctionType):
            if not runs_no_script_code(value):
                self._add_function(value)
        elif isinstance(value, (type, types.ModuleType)):
            if is_of_script(value):
                self.add_holder(value)
        elif is_of_script(type(value)):
            self.may_change |= any(map(_has_operators, type(value).__mro__))
            self.add_holder(value)
        elif not runs_no_script_code(value) and not _is_of_tensorflow(value):
            self.may_change |= not isinstance(value, _NAMESPACES) and type(value).__name__ != "FlagValues"
            self.add_holder(value)

    def _add_container(self, name: str, value: Value) -> None:
        parts = list(value.values() if isinstance(value, dict) else value)
        if not isinstance(value, tuple):
            self.may_change |= not name or not all(map(_is_of_tensorflow, parts))
            self.lists.add(name)
        for part in parts:
            self.add("", part)

    def _add_function(self, function: types.FunctionType) -> None:
        names = set(names_in(function.__code__))
        for name in names & set(function.__globals__):
            self.add(name, function.__globals__[name])
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                self.add(name, cell.cell_contents)
            except ValueError:  # not bound yet
                self.may_change = True
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.add("", default)
        new = names - self._words
        self._words |= new
        for holder in list(self._holders):
            self._add_attributes(holder, new)

    def add_holder(self, value: Value) -> None:
        self._holders.append(value)
        self._add_attributes(value, self._words)

    def _add_attributes(self, holder: Value, words: set[str]) -> None:
        for word, value in list(_attributes(holder)):
            if word in words and not (
                isinstance(value, types.MethodType) and is_wrapper_of_keras(holder, value.__func__)
            ):
                is_computed = inspect.isdatadescriptor(value) and not isinstance(value, types.MemberDescriptorType)
                is_method = isinstance(value, types.FunctionType) and not runs_no_script_code(value)
                self.may_change |= is_computed or is_method and self._of_layer and not _is_layer(holder)
                self.add(word, getattr(holder, word, None) if isinstance(value, types.MemberDescriptorType) else value)


def _attributes(holder: Value) -> Iterator[tuple[str, Value]]:
    """Yield the attributes of an object, a class or a module that its code or its classes of the script have."""
    yield from getattr(holder, "__dict__", {}).items()
    for owner in getattr(holder if isinstance(holder, type) else type(holder), "__mro__", ()):
        if is_of_script(owner):
            yield from vars(owner).items()


def _is_layer(holder: Value) -> bool:
    """Return True for a layer or a metric, or the class of one."""
    return issubclass(holder if isinstance(holder, type) else type(holder), _LAYERS)


def _has_operators(owner: type) -> bool:
    """Return True if operators, iteration or attributes of an object run code of a class of the script."""
    return is_of_script(owner) and any(
        isinstance(value, types.FunctionType) and name.startswith("__") and name.endswith("__") and name not in _CALLED
        for name, value in vars(owner).items()
    )


def _is_of_tensorflow(value: Value) -> bool:
    return isinstance(value, (tf.Tensor, tf.Variable, tf.Module, tf.keras.layers.Layer)) or runs_no_script_code(value)
