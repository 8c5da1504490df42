"""Training steps of eager code: what they are given and return, and if tf.function can trace them."""

from __future__ import annotations

import builtins
import contextlib
import functools
import re
import weakref
from typing import TYPE_CHECKING, Iterator

import numpy as np

from npu_shim._tensorflow import tf_api, tf_session

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

    from npu_shim._tensorflow.types import Function, Result, Value

tf = tf_api.tf
_TRIAL = 2  # the call before which a step is traced: its first one has created all variables
_OBJECTS: weakref.WeakKeyDictionary[Seen, list[int]] = weakref.WeakKeyDictionary()  # the first ones passed to a step
_PACKAGES = frozenset({"tensorflow", "tensorflow_core", "keras", "tf_keras"})
_DRAWS = re.compile("Random|TruncatedNormal|ParameterizedTruncatedNormal|Multinomial")  # other numbers in a function
_LAMBDAS = frozenset({"Lambda", "TFOpLambda"})  # layers that run code of the script


def note_step(seen: Seen, value: Value) -> Value:
    """Note of each call of a step what its arguments and results are, and once if it can be traced.

    The trace is noted as ``traces``, and as ``draws`` if it has random ops with the state of eager code.
    """
    eager = tf.executing_eagerly()
    seen.note("eager", eager)
    if not eager or not callable(value) or isinstance(value, tf_session.FUNCTION):
        return value

    @functools.wraps(value)
    def step(*args: Value, **kwargs: Value) -> Result:
        _note_parts(seen, "arguments", [args, kwargs])
        if seen.times == _TRIAL:
            _try_trace(seen, value, args, kwargs)
        returned = value(*args, **kwargs)
        _note_parts(seen, "returns", returned)
        return returned

    return step


def note_callee(seen: Seen, value: Value) -> Value:
    """Note if a function or an object, with all its layers, is one of TensorFlow, as ``is``."""
    seen.note("is", "library" if _is_of_library(getattr(value, "__self__", value)) else "other")
    return value


def _note_parts(seen: Seen, attribute: str, values: Value) -> None:
    objects = []
    for part in tf.nest.flatten(values):
        if isinstance(part, tf.Tensor):
            kind = "tensor"
        elif isinstance(part, np.ndarray):
            kind = "array"
        elif part is None:
            kind = "none"
        elif isinstance(part, (bool, int, float, complex, str, bytes, np.generic)):
            kind = "number"
        else:
            kind = "object" if _is_of_library(part) else "other"
            objects.append(id(part))
        seen.note(attribute, kind)
    if objects and _OBJECTS.setdefault(seen, objects) != objects:
        seen.note(attribute, "other")


def _is_of_library(value: Value) -> bool:
    flatten = getattr(value, "_flatten_layers", None)
    parts = list(flatten()) if flatten is not None else [value, *getattr(value, "submodules", ())]
    types = [part if hasattr(part, "__code__") or isinstance(part, type) else type(part) for part in parts]
    return all(str(part.__module__).split(".")[0] in _PACKAGES and part.__name__ not in _LAMBDAS for part in types)


def _try_trace(seen: Seen, function: Function, args: tuple[Value, ...], kwargs: dict[str, Value]) -> None:
    """Trace a call. Nothing is computed, and nothing in it is noted."""
    with _unwatched():
        try:
            graph = tf.function(function).get_concrete_function(*args, **kwargs).graph.as_graph_def()
        except Exception:  # whatever the function of the script raises
            seen.note("traces", False)
            return
    nodes = [*graph.node, *(node for called in graph.library.function for node in called.node_def)]
    seen.note("traces", True)
    seen.note("draws", any(_DRAWS.match(node.op) for node in nodes))


@contextlib.contextmanager
def _unwatched() -> Iterator[None]:
    """Return a context manager in which watched code notes nothing."""
    from convert_tf2npu.api import Watched

    before = {name: getattr(builtins, name) for name in (Watched.ran, Watched.seen)}
    setattr(builtins, Watched.ran, lambda number: None)
    setattr(builtins, Watched.seen, lambda number, value: value)
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(builtins, name, function)
