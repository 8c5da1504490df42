"""Variables and an iterator initialized in one run.

An iterator is initialized on the host and starts to read data. Variables are initialized on the NPU. One
``session.run`` puts both into one graph, which fails if the input pipeline reads something initialized in the same
run. Run the variables' initializer first, then the iterator's in a separate run.

Reported::

    import tensorflow as tf

    iterator = dataset.make_initializable_iterator()
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), iterator.initializer])

Reported::

    import tensorflow as tf

    iterator = tf.data.make_initializable_iterator(dataset)
    init = tf.global_variables_initializer()
    start = tf.group(init, iterator.initializer)

Untouched::

    import tensorflow as tf

    iterator = dataset.make_initializable_iterator()
    sess.run(tf.global_variables_initializer())
    sess.run(iterator.initializer)

Untouched::

    import tensorflow as tf

    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    sess.run([tf.global_variables_initializer(), weight.initializer])
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...semantics.model import Call, Where
from ..base import Context, Finding, Result

CODE = "NPU220"
CALLS = frozenset({"tensorflow.group"})
METHODS = frozenset({"run"})
_VARIABLES = frozenset(
    "tensorflow." + name
    for name in """global_variables_initializer
local_variables_initializer variables_initializer initialize_all_variables initializers.global_variables
initializers.variables initializers.local_variables initialize_variables""".split()
)
_ITERATORS = frozenset(
    """tensorflow.data.make_initializable_iterator
tensorflow.compat.v1.data.make_initializable_iterator tensorflow.data.Iterator.from_structure""".split()
)


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Result]:
    yield from _check(context, call, call.node.args[:1])


def check_call(context: Context, call: Call, name: str) -> Iterator[Result]:
    yield from _check(context, call, call.node.args)


def _check(context: Context, call: Call, values: list[ast.expr]) -> Iterator[Result]:
    parts: list[ast.expr] = []
    for value in values:
        parts += value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
    if (
        len(parts) > 1
        and any(_of_variables(context, p, call.where) for p in parts)
        and any(_of_iterator(context, p, call.where) for p in parts)
    ):
        yield Finding(
            call.node,
            "one run initializes variables on the NPU and an iterator on the host. "
            "Run the variables' initializer first, then the iterator's in a separate run",
        )


def _source(context: Context, node: ast.expr, where: Where) -> Call | None:
    """Return the call that created a value."""
    if isinstance(node, ast.Call):
        return Call(node, where)
    binding = context.names.only_binding(node, where)
    return Call(binding.node, binding.where) if binding is not None and isinstance(binding.node, ast.Call) else None


def _of_variables(context: Context, node: ast.expr, where: Where) -> bool:
    source = _source(context, node, where)
    return source is not None and context.resolve(source.node.func, source.where) in _VARIABLES


def _of_iterator(context: Context, node: ast.expr, where: Where) -> bool:
    binding = context.names.only_binding(node, where)
    if binding is not None and isinstance(binding.node, (ast.Attribute, ast.Call)):
        node, where = binding.node, binding.where
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "make_initializer":
        return True
    if not (isinstance(node, ast.Attribute) and node.attr == "initializer"):
        return False
    source = _source(context, node.value, where)
    if source is None:
        return False
    return context.resolve(source.node.func, source.where) in _ITERATORS or (
        isinstance(source.node.func, ast.Attribute) and source.node.func.attr == "make_initializable_iterator"
    )
