"""Training steps in loops: what the names that a function of the step gets are, and if tf.function can trace it."""

from __future__ import annotations

import linecache
import types
from typing import TYPE_CHECKING

from npu_shim._tensorflow import tf_api
from npu_shim.rehearsal.observing import steps
from npu_shim.rehearsal.observing.plain_layers import names_in

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
    steps.note_arguments(seen, dict(zip(getattr(seen, _PARAMETERS), arguments)))
    if seen.times == steps.TRIAL:
        wanted = {*names_in(_defined(seen, block.code, {}).__code__), "__name__"}
        function = _defined(seen, block.code, {name: values[name] for name in wanted if name in values})
        steps.note_lists(seen, function)
        steps.trace_at_end(seen, function, arguments, {}, getattr(seen, _PARAMETERS))
    return block.value


def _defined(seen: Seen, code: str, values: dict[str, Value]) -> types.FunctionType:
    """Return the function of a step with some values as its global names. AutoGraph can read its source."""
    file = f"<step {id(seen)}>"
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)
    known = set(values)
    exec(compile(code, file, "exec"), values)
    return next(value for name, value in values.items() if name not in known and isinstance(value, types.FunctionType))
