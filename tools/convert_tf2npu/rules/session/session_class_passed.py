"""Session class passed to other code.

If a script passes ``tf.Session`` itself as an argument or a default value, other code creates the session. That
session needs a configuration from ``npu_config_proto``. Pass
``functools.partial(tf.Session, config=npu_config_proto())`` instead of the class. If the other code passes a
configuration of its own, wrap it there in ``npu_config_proto(config_proto=...)``.

Reported::

    import tensorflow as tf

    pool = SessionPool(factory=tf.Session)

Reported::

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
from ...syntax.expressions import last_part, values_of
from ...tf_api.name_tables import SESSION_PARAMETERS
from ..base import Context, Finding

CODE = "NPU204"
_WORDS = frozenset(last_part(name) for name in SESSION_PARAMETERS)
# The text after an argument or a default value. This test is fast and excludes most files.
_FOLLOWED = {word: re.compile(word + r"\s*[,):#\\]") for word in _WORDS}
_QUERIES = frozenset({"isinstance", "issubclass", "hasattr", "getattr", "setattr", "type", "partial", "super", "cast"})


def check_file(context: Context) -> Iterator[Finding]:
    text = context.source.text
    if not any(word in text and behind.search(text) for word, behind in _FOLLOWED.items()):
        return
    for call in context.names.calls:
        values = [value for value in values_of(call.node) if _last_word(value) in _WORDS]
        if values and _last_word(call.node.func) not in _QUERIES:
            yield from _report_session_classes(context, values, call.where)
    for function in context.names.functions:
        defaults = function.node.args.defaults + function.node.args.kw_defaults
        yield from _report_session_classes(
            context, [value for value in defaults if _last_word(value) in _WORDS], function.where
        )


def _last_word(node: ast.AST | None) -> str:
    """Return the last part of a name or attribute, or the empty string."""
    kind = type(node)
    return node.attr if kind is ast.Attribute else node.id if kind is ast.Name else ""  # type: ignore[union-attr]


def _report_session_classes(context: Context, values: Iterable[ast.AST | None], where: Where) -> Iterator[Finding]:
    for value in values:
        if value is not None and context.resolve(value, where) in SESSION_PARAMETERS:
            yield Finding(
                value,
                "other code creates this {0}. Pass functools.partial({1}, "
                "config=npu_config_proto()) instead of the class",
                _last_word(value),
                context.source.segment(value),
            )
