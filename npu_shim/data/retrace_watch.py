"""Report functions that TensorFlow traces again: the NPU compiles a graph for each trace of a tf.function."""

from __future__ import annotations

import inspect
import os
from typing import Counter, Mapping, Sequence

from npu_shim._tensorflow import script_frames, tf_api
from npu_shim._tensorflow.types import Function, Result, Structure, TracedFunction, Value
from npu_shim.data.fit_watch import SignatureCounts

tf = tf_api.tf
_KERAS_FOLDER = os.sep + "keras" + os.sep


class RetraceWatch(SignatureCounts):
    """Count the traces of each tf.function that a script calls, by the signature of the call.

    A call traces if TensorFlow has no graph for its arguments: a tensor of another shape or type, another Python value,
    or a function that was created anew. Functions that others call while they are traced are not counted, nor are those
    of TensorFlow and Keras; see FitWatch.
    """

    _title, _noun = "traces of tf.functions. The NPU compiles a graph for each:", "traces"

    def call_and_count(
        self, function: TracedFunction, original: Function, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Result:
        """Call a tf.function, and count the call if it traces. Return its result."""
        if not tf.executing_eagerly():
            return original(function, *args, **kwargs)
        before = function.experimental_get_tracing_count()
        result = original(function, *args, **kwargs)
        if function.experimental_get_tracing_count() > before:
            self._count_trace_and_warn(function, (args, kwargs))
        return result

    def _is_change(self, counts: Counter[str]) -> bool:
        return sum(counts.values()) > 1

    def _count_trace_and_warn(self, function: TracedFunction, args_and_kwargs: Structure) -> None:
        path, line, name = _file_line_and_name(function.python_function)
        if path.startswith(script_frames.LIBRARIES) or _KERAS_FOLDER in path:
            return
        source = f"{name} ({path}:{line})"
        counts = self._counts[source]
        text = ", ".join(_signature_text(argument) for argument in _flatten_arguments(args_and_kwargs))
        counts[text] += 1
        if sum(counts.values()) == 2:
            before = next(iter(counts))
            tf_api.logging.warning(
                f"npu_shim: {path}:{line}: {name} is traced again, for ({text}) after ({before}), and the NPU compiles "
                "each trace. Pass tensors of static shapes, and create the function once. Reported once."
            )


def _flatten_arguments(args_and_kwargs: Structure) -> list[Structure]:
    args, kwargs = args_and_kwargs
    return [argument for value in [*args, *kwargs.values()] for argument in tf.nest.flatten(value)]


def _signature_text(value: Value) -> str:
    """Return the part of a signature for an argument: type and shape of a tensor, the value of a Python number."""
    shape = getattr(value, "shape", None)
    if shape is not None and hasattr(value, "dtype"):
        name = getattr(value.dtype, "name", str(value.dtype))
        rank = getattr(shape, "rank", len(shape) if isinstance(shape, tuple) else None)
        return f"{name} None" if rank is None else f"{name} {list(shape)}"
    if isinstance(value, (bool, int, float, str, bytes)):
        return repr(value)
    return "nothing" if value is None else type(value).__name__


def _file_line_and_name(function: Function) -> tuple[str, int, str]:
    """Return file, line and name of a Python function."""
    function = inspect.unwrap(getattr(function, "func", function))
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    name = getattr(function, "__name__", type(function).__name__)
    return (os.path.abspath(code.co_filename), code.co_firstlineno, name) if code else ("an unknown file", 0, name)
