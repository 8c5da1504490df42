"""Training steps of eager code: what they are given and return, and if tf.function can trace them."""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
from typing import TYPE_CHECKING, Iterator, Mapping, Sequence

import numpy as np

from npu_shim._tensorflow import tf_api, tf_session
from npu_shim.rehearsal.observing.plain_layers import (
    attributes_read_by_calls,
    is_optimizer,
    is_wrapper_of_keras,
    keeps_tensors,
    may_be_built_later,
    runs_no_script_code,
    settings_of,
    with_inner_layers,
)
from npu_shim.rehearsal.observing.read_values import lists_read, lists_read_by_call

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

    from npu_shim._tensorflow.types import Function, Result, Value

tf = tf_api.tf
# Objects whose methods compute, and methods of models that run training or change the model.
_COMPUTING = (
    *(tf.DType, tf.GradientTape, tf.IndexedSlices, tf.Module, tf.RaggedTensor, tf.SparseTensor, tf.Tensor),
    *(tf.TensorArray, tf.TensorShape, tf.Variable, tf.data.Dataset, tf.random.experimental.Generator),
    *(tf.keras.layers.Layer, tf.keras.losses.Loss, tf.keras.metrics.Metric),
    tf.keras.optimizers.schedules.LearningRateSchedule,
)
_WITH_EFFECTS = frozenset(
    "add compile evaluate evaluate_generator export fit fit_generator get_weights load_weights pop predict "
    "predict_generator predict_on_batch save save_weights set_weights summary test_on_batch train_on_batch".split()
)
_CONDITIONS = frozenset({"Case", "If", "StatelessCase", "StatelessIf"})
TRIAL = 2  # the call with whose arguments a step is traced: its first one has created all variables
# Process state: steps to trace when the script has ended, and their arguments. Earlier, a trace could change results.
_trials: list[tuple[Seen, Function, tuple[Value, ...], dict[str, Value], Sequence[str] | None]] = []
_called: dict[tuple[int, int], tuple[Seen, list[Value]]] = {}  # the layers in what steps call, by place and object
_OBJECTS = "npu_shim_objects"  # attribute of the answers about a step: the first objects that were passed to it
_NUMBERS = "npu_shim_numbers"  # attribute of the same answers: the numbers of Python in the first call


def note_step(seen: Seen, value: Value) -> Value:
    """Note of each call of a step what its arguments and results are, and once if it can be traced.

    The trace is that of trace_steps().
    """
    eager = tf.executing_eagerly()
    seen.note("eager", eager)
    if not eager or not callable(value) or isinstance(value, tf_session.FUNCTION):
        return value

    @functools.wraps(value)
    def step(*args: Value, **kwargs: Value) -> Result:
        signature = inspect.signature(value, follow_wrapped=False)  # a wrapper may pass other arguments on
        note_arguments(seen, signature.bind(*args, **kwargs).arguments)
        if seen.times == TRIAL:
            note_lists(seen, value)
            trace_at_end(seen, value, args, kwargs)
        returned = value(*args, **kwargs)
        _note_parts(seen, "returns", returned)
        return returned

    return step


def note_callee(seen: Seen, value: Value) -> Value:
    """Note if a function or an object, with all its layers, is of TensorFlow or has no effects in Python, as ``is``.

    The attributes that layers and metrics of the script read in their calls are noted as ``reads``, and the settings of
    other objects; as ``lists`` those that are lists of tensors or layers.
    """
    owner, method = getattr(value, "__self__", value), getattr(value, "__func__", None)
    parts = with_inner_layers(owner)
    is_plain = method is None or runs_no_script_code(method) or is_wrapper_of_keras(owner, method)
    own = None if is_plain else method
    own_parts = [part for part in parts if not runs_no_script_code(part)]
    reads = attributes_read_by_calls(own_parts, owner, own)
    settings = [settings_of(part) for part in parts if runs_no_script_code(part)]
    lists = [lists_read_by_call(part, names) for part, names in zip(own_parts, reads)]
    is_known = method is None or _has_computing_method(owner, method)
    if isinstance(owner, tf.keras.layers.Layer):
        _called[id(seen), id(owner)] = seen, parts
    if len(reads) < len(own_parts) or None in lists or not is_known or any(map(keeps_tensors, parts)):
        seen.note("is", "other")
    else:
        seen.note("lists", tuple(sorted({name for names in lists for name in names or ()})))
        seen.note("is", "layer" if reads else "library")
        seen.note("reads", tuple(sorted({name for names in (*reads, *settings) for name in names or ()})))
    return value


def _has_computing_method(owner: Value, method: Function) -> bool:
    """Return True for a method of a tensor or a layer and the like, unless it has effects in Python."""
    return (isinstance(owner, _COMPUTING) or is_optimizer(owner)) and method.__name__ not in _WITH_EFFECTS


def note_lists(seen: Seen, function: Function) -> None:
    """Note the names of lists that a step reads as ``lists``, and arguments of another kind if values may change."""
    lists = lists_read(function)
    if lists is None:
        seen.note("arguments", "other")
    else:
        seen.note("lists", tuple(sorted(lists)))


def _note_parts(seen: Seen, attribute: str, values: Value) -> None:
    objects = []
    for part in tf.nest.flatten(values):
        if isinstance(part, tf.Tensor):
            kind = "tensor"
        elif isinstance(part, np.ndarray):
            kind = "array"
        elif part is None:
            kind = "none"
        elif _is_number(part):
            kind = "number"
        else:
            kind = "object" if all(map(runs_no_script_code, with_inner_layers(part))) else "other"
            objects.append(id(part))
        seen.note(attribute, kind)
    if objects and getattr(seen, _OBJECTS, objects) != objects:
        seen.note(attribute, "other")
    elif objects:
        setattr(seen, _OBJECTS, objects)


def _is_number(value: Value) -> bool:
    return isinstance(value, (bool, int, float, complex, str, bytes, np.generic))


def _is_object(part: Value) -> bool:
    return not isinstance(part, (tf.Tensor, np.ndarray, type(None))) and not _is_number(part)


def note_arguments(seen: Seen, arguments: Mapping[str, Value]) -> None:
    """Note the arguments of a step, their types and shapes, and if the numbers are those of the first call.

    The names of parameters that get numbers of Python are noted as ``numbers``, and of those that get objects as
    ``objects``.
    """
    values = list(arguments.values())
    _note_parts(seen, "arguments", values)
    parts = tf.nest.flatten(values)
    tensors = [part for part in parts if isinstance(part, (tf.Tensor, np.ndarray))]
    seen.note("shapes", " ".join(f"{part.dtype.name}{[*map(int, part.shape)]}" for part in tensors))
    numbers = list(filter(_is_number, parts))
    for kind, is_one in ("numbers", _is_number), ("objects", _is_object):
        seen.note(kind, tuple(name for name, part in arguments.items() if any(map(is_one, tf.nest.flatten(part)))))
    if not hasattr(seen, _NUMBERS):
        setattr(seen, _NUMBERS, numbers)
    seen.note("constant", [*map(repr, numbers)] == [*map(repr, getattr(seen, _NUMBERS))])


def trace_at_end(
    seen: Seen,
    function: Function,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
    names: Sequence[str] | None = None,
) -> None:
    """Trace a step with the arguments of a call when the script has ended.

    Args:
        seen: the answers about the step.
        function: of the step.
        args, kwargs: of the call.
        names: of its arguments, if arrays of float64 may be float32, as eager code takes them; else None.
    """
    _trials.append((seen, function, *tf.nest.map_structure(_tensor_spec, (args, kwargs)), names))


def trace_steps() -> None:
    """Note of each step if it can be traced, as ``traces``, and the arguments that must be float32, as ``narrowed``.

    A function cannot be traced again for a layer that makes its variables then, so callees with one are noted as other.
    """
    while _called:
        seen, parts = _called.popitem()[1]
        if any(map(may_be_built_later, parts)):
            seen.note("is", "other")
    while _trials:
        seen, function, args, kwargs, names = _trials.pop()
        traces = _can_be_traced(seen, function, args, kwargs)
        doubles = [
            number for number, part in enumerate(args) if names is not None and getattr(part, "dtype", "") == np.float64
        ]
        narrowed: tuple[str, ...] = ()
        if not traces and doubles and all(isinstance(args[number], np.ndarray) for number in doubles):
            args = tuple(part.astype("f4") if number in doubles else part for number, part in enumerate(args))
            traces = _can_be_traced(seen, function, args, kwargs)
            narrowed = tuple(name for number, name in enumerate(names or ()) if number in doubles)
        seen.note("traces", traces)
        if names is not None:
            seen.note("narrowed", narrowed)


def _tensor_spec(part: Value) -> Value:
    return tf.TensorSpec.from_tensor(part) if isinstance(part, tf.Tensor) else part


def _can_be_traced(seen: Seen, function: Function, args: tuple[Value, ...], kwargs: dict[str, Value]) -> bool:
    """Return True if a call can be traced, and note what it returns. Nothing is computed."""
    returned = []

    def traced(*args: Value, **kwargs: Value) -> Result:
        result = function(*args, **kwargs)
        returned.append(result)
        return result

    with _notes_paused():
        try:
            concrete = tf.function(traced).get_concrete_function(*args, **kwargs)
        except Exception:  # whatever the function of the script raises
            return False
    if any(op.type in _CONDITIONS and "gradient_tape" in op.name for op in concrete.graph.get_operations()):
        return False  # what a branch does not use has no gradient in eager code, and zeros in a graph
    _note_parts(seen, "returns", returned[-1])
    return True


@contextlib.contextmanager
def _notes_paused() -> Iterator[None]:
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
