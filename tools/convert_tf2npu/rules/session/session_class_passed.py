"""Sessions that are made where their class is handed to.

Where a script gives ``tf.Session`` itself to a function or a default argument, something else calls it. What
that hands over as its configuration has to come from ``npu_config_proto``.

Told::

    import tensorflow as tf

    pool = SessionPool(factory=tf.Session)

Told::

    import tensorflow as tf

    def run(graph, make_session=tf.train.MonitoredTrainingSession):
        return make_session()

Untouched::

    import tensorflow as tf

    assert isinstance(sess, (tf.Session, tf.InteractiveSession))

Untouched::

    import requests
    import tensorflow as tf

    pool = SessionPool(factory=requests.Session)

Untouched::

    import functools
    import tensorflow as tf
    from npu_shim.npu_init import *

    pool = SessionPool(factory=functools.partial(tf.Session, config=npu_config_proto()))
"""

from __future__ import annotations

import ast
import re
from typing import Iterable, Iterator

from ...semantics.model import Where
from ...semantics.session_signatures import FUNCTIONS
from ...syntax.expressions import last_part
from ..base import Context, Finding, Result

CODE = "NPU204"
_WORDS = frozenset(last_part(name) for name in FUNCTIONS)
# What is behind an argument or a default, and before that blanks: words are looked for fast, and few stand so.
_GIVEN = {word: re.compile(word + r"\s*[,):#\\]") for word in _WORDS}
_ASKS = frozenset({"isinstance", "issubclass", "hasattr", "getattr", "setattr", "type", "partial", "super", "cast"})


def check_file(context: Context) -> Iterator[Result]:
    text = context.source.text
    if not any(word in text and behind.search(text) for word, behind in _GIVEN.items()):
        return
    for call in context.names.calls:
        values = [value for value in call.node.args + [k.value for k in call.node.keywords] if _last(value) in _WORDS]
        if values and _last(call.node.func) not in _ASKS:
            yield from _handed_on(context, values, call.where)
    for function in context.names.functions:
        defaults = function.node.args.defaults + function.node.args.kw_defaults
        yield from _handed_on(context, [value for value in defaults if _last(value) in _WORDS], function.where)


def _last(node: ast.AST | None) -> str:
    """The last word of a name or attribute."""
    kind = type(node)
    return node.attr if kind is ast.Attribute else node.id if kind is ast.Name else ""  # type: ignore[union-attr]


def _handed_on(context: Context, values: Iterable[ast.AST | None], where: Where) -> Iterator[Result]:
    for value in values:
        if value is not None and context.resolve(value, where) in FUNCTIONS:
            yield Finding(
                value,
                f"{_last(value)} is handed on, so that something else makes the session; hand on functools.partial("
                f"{context.source.segment(value)}, config=npu_config_proto())",
            )
