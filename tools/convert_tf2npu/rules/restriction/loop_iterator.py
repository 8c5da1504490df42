"""One-shot iterators with several iterations per loop.

With several iterations per loop the NPU fetches its data itself, from an iterator that the host initialized. The host
cannot initialize a one-shot iterator.

Reported::

    import tensorflow as tf
    from npu_shim.npu_init import *

    batch = dataset.make_one_shot_iterator().get_next()
    train_op = util.set_iteration_per_loop(sess, train_op, 10)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    iterator = dataset.make_initializable_iterator()
    train_op = util.set_iteration_per_loop(sess, train_op, 10)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    batch = dataset.make_one_shot_iterator().get_next()
    train_op = util.set_iteration_per_loop(sess, train_op, 1)
"""

from __future__ import annotations

from typing import Iterator

from ...semantics.model import Call
from ...semantics.signatures import bind_arguments
from ...syntax.expressions import boxed_constant
from ..base import Context, Finding

CODE = "NPU244"
CALLS = frozenset({"npu_shim.npu_init.util.set_iteration_per_loop"})


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    if context.once(_calls_with_iterations_per_loop)[:1] != [call]:
        return  # an iterator is reported once
    loops = _iterations_per_loop(call)
    for other in context.names.calls:
        if getattr(other.node.func, "attr", "") == "make_one_shot_iterator":
            yield Finding(
                other.node,
                "iterations_per_loop={0} needs an iterator that the host initializes. "
                "Use make_initializable_iterator() and run its initializer",
                loops,
            )


def _calls_with_iterations_per_loop(context: Context) -> list[Call]:
    """Return the calls that let the device run several steps at a time."""
    return [
        call
        for call in context.names.calls
        if context.called_names.get(call.node) in CALLS and _iterations_per_loop(call) > 1
    ]


def _iterations_per_loop(call: Call) -> int:
    value = boxed_constant(
        bind_arguments(call.node, ("sess", "train_op", "iterations_per_loop")).args.get("iterations_per_loop")
    )
    return value[0] if value is not None and isinstance(value[0], int) else 0
