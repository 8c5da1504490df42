"""Layers and metrics of a script whose calls have no effect in Python, as far as their compiled code shows."""

from __future__ import annotations

import dis
import functools
import itertools
import os
import sys
import types
from typing import Iterator, Sequence

import numpy as np

from npu_shim._tensorflow import tf_api, tf_keras
from npu_shim._tensorflow.types import Function, Value
from npu_shim.import_hook.project_files import ProjectFiles

tf = tf_api.tf
_PACKAGES = frozenset({"tensorflow", "tensorflow_core", "keras", "tf_keras"})
# Objects that layers and optimizers run in a step.
_HELD = (
    tf.keras.constraints.Constraint,
    tf.keras.optimizers.schedules.LearningRateSchedule,
    tf.keras.regularizers.Regularizer,
)
# Classes that run functions of the script, or keep what a model has computed for a call.
_LAMBDAS = frozenset({"AddLoss", "AddMetric", "Lambda", "TFOpLambda", "MeanMetricWrapper"})
_COMPILED = frozenset({"compiled_loss", "compiled_metrics", "loss", "optimizer"})
_AROUND = ("__call__", "compute_mask")  # methods of a script that the call of a layer runs besides
_EFFECTS = ("STORE_ATTR", "STORE_GLOBAL", "STORE_SUBSCR", "DELETE_", "YIELD", "IMPORT_")
_BUILTINS = frozenset("dict enumerate int isinstance len list range reversed super tuple zip".split())
_REFUSED = frozenset("add_loss add_metric append assign extend insert item numpy pop summary tolist update".split())


def with_inner_layers(value: Value) -> list[Value]:
    """Return an object with the layers and modules in it."""
    if isinstance(value, tf.keras.layers.Layer):
        return tf_keras.layer_and_sublayers(value)
    return [value, *getattr(value, "submodules", ())]


def runs_no_script_code(value: Value) -> bool:
    """Return True for functions of TensorFlow, and for objects of its classes that run no code of the script.

    An object may hold a function or an object of the script, as a layer its activation, or an optimizer its schedule.
    """
    is_object = not hasattr(value, "__code__") and not isinstance(value, type)
    named = type(value) if is_object else value
    if str(named.__module__).split(".")[0] not in _PACKAGES or named.__name__ in _LAMBDAS:
        return False
    return not is_object or not any(map(_is_code_of_script, _held_by(value)))


def _held_by(value: Value) -> Iterator[Value]:
    """Yield the attributes of an object, and what lists and dictionaries among them hold."""
    for part in getattr(value, "__dict__", {}).values():
        yield part
        if isinstance(part, (list, tuple)):
            yield from part
        elif isinstance(part, dict):
            yield from part.values()


def _is_code_of_script(value: Value) -> bool:
    """Return True for a function of the script, and an object of its classes that is no layer; those are read alone."""
    if isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
        function = getattr(value, "func", getattr(value, "__func__", value))
        return not runs_no_script_code(function)
    return is_of_script(type(value)) and not isinstance(value, (tf.Module, tf.keras.layers.Layer))


def is_of_script(value: Value) -> bool:
    """Return True for a class or a module of a file that is not installed."""
    module = value if isinstance(value, types.ModuleType) else sys.modules.get(str(value.__module__))
    return _is_file_of_script(str(getattr(module, "__file__", None) or ""))


@functools.lru_cache(maxsize=None)
def _is_file_of_script(path: str) -> bool:
    return bool(path) and ProjectFiles(os.path.abspath(os.sep)).normalized_path(path) is not None


def is_optimizer(value: Value) -> bool:
    """Return True for an optimizer of TensorFlow or Keras, which have no class in common."""
    return hasattr(value, "apply_gradients") and not isinstance(value, type)


def settings_of(value: Value) -> frozenset[str]:
    """Return the attributes of an object of TensorFlow that Python code may assign, as the rate of a dropout.

    Those of its regularizers and the like are among them, functions and layers, and ``adapt`` of a layer that has it.
    Those that ``compile`` sets are not, which no call of a model reads.
    """
    plain = (bool, int, float, str, type(None), np.generic, np.ndarray, types.FunctionType, tf.keras.layers.Layer)
    objects = [value, *(part for part in _held_by(value) if isinstance(part, _HELD) or is_optimizer(part))]
    held = (item for part in objects for item in getattr(part, "__dict__", {}).items())
    names = frozenset(name.lstrip("_") for name, part in held if isinstance(part, plain)) - _COMPILED
    return names | {"adapt"} if hasattr(value, "adapt") else names


def keeps_tensors(layer: Value) -> bool:
    """Return True for a layer that adds a loss of its outputs, which code can read after the step."""
    return getattr(layer, "activity_regularizer", None) is not None


def may_be_built_later(layer: Value) -> bool:
    """Return True for a layer without layers in it that makes its variables in its first call, which is to come."""
    makes_variables = getattr(type(layer), "build", None) is not tf.keras.layers.Layer.build
    return makes_variables and not getattr(layer, "built", True) and len(with_inner_layers(layer)) == 1


def names_in(code: types.CodeType) -> Iterator[str]:
    """Yield the names that a function and those in it may read from outside."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_in(constant)


def is_wrapper_of_keras(value: Value, method: Function) -> bool:
    """Return True for a function that Keras 1.15 puts around a method which the call of a metric runs.

    It has the module and the name of the method, and another code.
    """
    package = str(method.__globals__["__name__"]).split(".")[0]
    return package in _PACKAGES and method.__name__ in _called_methods(value)


def attributes_read_by_calls(values: Sequence[Value], owner: Value, method: Function | None) -> list[frozenset[str]]:
    """Return what the calls of layers and metrics read as attributes; [] if one has, or may have, effects in Python.

    Args:
        values: the layers and metrics, which may call methods of each other.
        owner: one of them.
        method: one of its class that is called, too.
    """
    words: frozenset[str] = frozenset()
    while True:
        reads = [_attributes_read(value, method if value is owner else None, words) for value in values]
        known = [names for names in reads if names is not None]
        if len(known) < len(reads) or words.issuperset(itertools.chain(*known)):
            return known if len(known) == len(reads) else []
        words = words.union(*known)


def _attributes_read(value: Value, method: Function | None, words: frozenset[str]) -> frozenset[str] | None:
    """Return what the call of one reads, and what its methods read that have the names of what others read."""
    owner = type(value)
    if runs_no_script_code(owner):  # an object of TensorFlow that holds a function of the script
        return None
    called = [getattr(owner, name, None) for name in _called_methods(value)]
    waiting = [function for function in (*called, method) if isinstance(function, types.FunctionType)]
    if not called or len(waiting) < len(called) + (method is not None):
        return None
    waiting += [function for name in (*_AROUND, *words) for function in _functions_of_script(value, name)]
    read: set[str] = set()
    seen: set[types.FunctionType] = set()
    while waiting:
        function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        if set(function.__code__.co_freevars) - {"__class__"}:
            return None
        for step in _instructions_of(function.__code__):
            name = step.argval
            if step.opname.startswith(_EFFECTS) or name in _REFUSED:
                return None
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and not _is_global_without_effects(function, name):
                return None
            if step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                read.add(name)
                waiting.extend(_functions_of_script(value, name))
    return frozenset(read)


def _functions_of_script(value: Value, name: str) -> Iterator[types.FunctionType]:
    """Yield the functions that an attribute of an object may be: its own, and those of its class and of its bases."""
    for attributes in (vars(value), *map(vars, type(value).__mro__)):
        part = attributes.get(name)
        part = part.fget if isinstance(part, property) else getattr(part, "__func__", part)
        if isinstance(part, types.FunctionType) and not runs_no_script_code(part):
            yield part


def _called_methods(value: Value) -> tuple[str, ...]:
    """Return the names of the methods that the call of a layer or a metric runs; none for other objects."""
    if isinstance(value, tf.keras.metrics.Metric):  # in Keras 2 a layer, too
        return "update_state", "result"
    return ("call",) if isinstance(value, tf.keras.layers.Layer) else ()


@functools.lru_cache(maxsize=None)
def _instructions_of(code: types.CodeType) -> tuple[dis.Instruction, ...]:
    """Return the instructions of a function and of those in it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return tuple(itertools.chain(dis.get_instructions(code), *map(_instructions_of, inner)))


def _is_global_without_effects(function: types.FunctionType, name: str) -> bool:
    """Return True if a global name is a module or a function of TensorFlow, or a builtin without effects."""
    if name not in function.__globals__:
        return name in _BUILTINS or name.startswith("__npu_shim_")  # with which the run is watched
    value = function.__globals__[name]
    if isinstance(value, types.ModuleType):
        return value.__name__.split(".")[0] in _PACKAGES
    return isinstance(value, (type, types.FunctionType)) and (runs_no_script_code(value) or _is_layer_class(value))


def _is_layer_class(value: Value) -> bool:
    """Return True for a class of layers or metrics, which super() names."""
    return isinstance(value, type) and issubclass(value, (tf.keras.layers.Layer, tf.keras.metrics.Metric))
