"""Training steps in loops: what the names that a function of the step gets are, and if tf.function can trace it."""

from __future__ import annotations

import linecache
import types
from typing import TYPE_CHECKING, Iterator

import numpy as np

from npu_shim._tensorflow import tf_api
from npu_shim.rehearsal.observing import steps

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

    from npu_shim._tensorflow.types import Value
    from npu_shim.rehearsal.observing.observation import CodeInFrame

tf = tf_api.tf
_PARAMETERS = "npu_shim_parameters"  # attribute of the answers about a step: the names of its parameters


def note_block(seen: Seen, block: CodeInFrame) -> Value:
    """Note at each tape of a step what a function of the step would get, and once if it can be traced.

    What the function returns is noted from the trace, that of steps.trace_steps().
    """
    eager = tf.executing_eagerly()
    seen.note("eager", eager)
    if not eager:
        return block.value
    frame = block.frame
    values = {**frame.f_globals, **frame.f_locals}
    if not hasattr(seen, _PARAMETERS):
        code = _defined(seen, block.code, {}).__code__
        setattr(seen, _PARAMETERS, code.co_varnames[: code.co_argcount])
    arguments = tuple(values[name] for name in getattr(seen, _PARAMETERS))
    steps.note_arguments(seen, arguments)
    if seen.times == steps.TRIAL:
        wanted = {*_names_in(_defined(seen, block.code, {}).__code__), "__name__"}
        held = {name: values[name] for name in wanted if name in values}
        if any(isinstance(value, np.ndarray) for value in held.values()):
            seen.note("arguments", "other")  # a graph keeps its numbers, which code may change in place
        steps.trace_at_end(seen, _defined(seen, block.code, held), arguments, {}, getattr(seen, _PARAMETERS))
    return block.value


def _defined(seen: Seen, code: str, values: dict[str, Value]) -> types.FunctionType:
    """Return the function of a step with some values as its global names. AutoGraph can read its source."""
    file = f"<step {id(seen)}>"
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)
    known = set(values)
    exec(compile(code, file, "exec"), values)
    return next(value for name, value in values.items() if name not in known and isinstance(value, types.FunctionType))


def _names_in(code: types.CodeType) -> Iterator[str]:
    """Yield the names that a function and those in it may read from outside."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)
