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
from typing import Iterator, Optional

from ..registry import Context, Finding, Result
from ..scopes import Where
from ..session_signatures import FUNCTIONS

CODE = 'NPU204'
_WORDS = frozenset(name.rsplit('.', 1)[1] for name in FUNCTIONS)
_ASKS = frozenset({'isinstance', 'issubclass', 'hasattr', 'getattr', 'setattr', 'type', 'partial', 'super', 'cast'})


def check_file(context: Context) -> Iterator[Result]:
    for call in context.names.calls:
        if getattr(call.node.func, 'attr', getattr(call.node.func, 'id', '')) not in _ASKS:
            for value in call.node.args + [k.value for k in call.node.keywords]:
                yield from _handed_on(context, value, call.where)
    for function in context.names.functions:
        for default in function.node.args.defaults + function.node.args.kw_defaults:
            yield from _handed_on(context, default, function.where)


def _handed_on(context: Context, value: Optional[ast.AST], where: Where) -> Iterator[Result]:
    if isinstance(value, (ast.Name, ast.Attribute)) and getattr(
            value, 'attr', getattr(value, 'id', '')) in _WORDS and context.resolve(value, where) in FUNCTIONS:
        yield Finding(value, '%s is handed on, so that something else makes the session; hand on functools.partial('
                      '%s, config=npu_config_proto())' % (
                          getattr(value, 'attr', getattr(value, 'id', '')), context.source.segment(value)))
