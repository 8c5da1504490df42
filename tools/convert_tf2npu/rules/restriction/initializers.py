"""Variables and an iterator initialized in one run.

An iterator is initialized on the host. One ``session.run`` that also initializes variables puts both into one graph, and
the NPU cannot take this graph: the variables are initialized on the host, and on the NPU they stay zero. The loss does
not fall, and no error says why. Run the variables' initializer first, then the iterator's in a separate run.

An initializer that is added to the collection ``TABLE_INITIALIZERS`` is part of ``tf.tables_initializer()``.

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

Reported::

    import tensorflow as tf

    iterator = dataset.make_initializable_iterator()
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    start = [tf.global_variables_initializer(), tf.tables_initializer()]
    sess.run(start)

Reported::

    import tensorflow as tf

    iterator = dataset.make_initializable_iterator()
    tf.add_to_collection(name=tf.GraphKeys.TABLE_INITIALIZERS, value=iterator.initializer)
    start = [tf.global_variables_initializer()]
    sess.run(start + [tf.tables_initializer()])

Reported::

    import tensorflow as tf

    iterator = dataset.make_initializable_iterator()
    tf.add_to_collection('inputs', iterator.initializer)
    sess.run([tf.global_variables_initializer(), tf.get_collection('inputs')])

Untouched::

    import tensorflow as tf

    iterator = dataset.make_initializable_iterator()
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    sess.run(tf.global_variables_initializer())
    sess.run(tf.tables_initializer())

Untouched::

    import tensorflow as tf

    sess.run([tf.global_variables_initializer(), tf.tables_initializer()])

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
import re
from typing import Iterator

from ...semantics.model import Call, Where
from ...syntax.expressions import boxed_constant
from ..base import Context, Finding

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

_TABLES = frozenset(
    f"tensorflow.{name}" for name in ("tables_initializer", "initialize_all_tables", "initializers.tables_initializer")
)
_COLLECT = frozenset({"tensorflow.add_to_collection"})
_GET = "tensorflow.get_collection"
_COLLECTION = "tensorflow.GraphKeys.TABLE_INITIALIZERS"
_COLLECTS = re.compile(rb"TABLE_INITIALIZERS,\s*(?:value\s*=\s*)?[\w.]*iterator\w*\.initializer")


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Finding]:
    fetches = [keyword.value for keyword in call.node.keywords if keyword.arg == "fetches"]
    yield from _findings_of_initializers(context, call, fetches or call.node.args[:1])


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    yield from _findings_of_initializers(context, call, call.node.args)


def _findings_of_initializers(context: Context, call: Call, values: list[ast.expr]) -> Iterator[Finding]:
    parts = [part for value in values for part in _members_with_places(context, value, call.where)]
    if (
        len(parts) > 1
        and any(_initializes_variables(context, *part) for part in parts)
        and any(_initializes_iterator(context, *part) for part in parts)
    ):
        yield Finding(
            call.node,
            "one run initializes variables and an iterator, so the NPU's variables stay zero. "
            "Run the variables' initializer first, then the iterator's in a separate run",
        )


def _members_with_places(context: Context, value: ast.expr, where: Where) -> list[tuple[ast.expr, Where]]:
    """Return the members of a list or tuple, also of one that a name has, with their places; else the value."""
    binding = context.names.only_binding(value, where)
    if binding is not None and isinstance(binding.node, (ast.List, ast.Tuple, ast.BinOp)):
        value, where = binding.node, binding.where
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):  # lists that are joined
        joined = (_members_with_places(context, side, where) for side in (value.left, value.right))
        return [part for parts in joined for part in parts]
    elements = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
    return [(element, where) for element in elements]


def _creating_call(context: Context, node: ast.expr, where: Where) -> Call | None:
    """Return the call that created a value."""
    if isinstance(node, ast.Call):
        return Call(node, where)
    binding = context.names.only_binding(node, where)
    return Call(binding.node, binding.where) if binding is not None and isinstance(binding.node, ast.Call) else None


def _initializes_variables(context: Context, node: ast.expr, where: Where) -> bool:
    source = _creating_call(context, node, where)
    return source is not None and context.resolve(source.node.func, source.where) in _VARIABLES


def _initializes_iterator(context: Context, node: ast.expr, where: Where) -> bool:
    binding = context.names.only_binding(node, where)
    if binding is not None and isinstance(binding.node, (ast.Attribute, ast.Call)):
        node, where = binding.node, binding.where
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "make_initializer":
            return True
        name = context.resolve(node.func, where)
        if name == _GET and len(node.args) == 1:
            collection = _collection_name(context, node.args[0], where)
            return bool(collection) and context.once(_collects_iterators, collection)
        return name in _TABLES and context.once(_collects_iterators, _COLLECTION)
    if not (isinstance(node, ast.Attribute) and node.attr == "initializer"):
        return False
    source = _creating_call(context, node.value, where)
    if source is None:
        return False
    return context.resolve(source.node.func, source.where) in _ITERATORS or (
        isinstance(source.node.func, ast.Attribute) and source.node.func.attr == "make_initializable_iterator"
    )


def _collects_iterators(context: Context, collection: str) -> bool:
    """Return True if the program adds the initializer of an iterator to a collection."""
    for call in context.names.calls:
        if context.called_names.get(call.node) in _COLLECT:
            given = dict(zip(("name", "value"), call.node.args))
            given.update((keyword.arg or "", keyword.value) for keyword in call.node.keywords)
            if len(given) == 2 and given.keys() >= {"name", "value"}:
                if _collection_name(context, given["name"], call.where) == collection:
                    if _initializes_iterator(context, given["value"], call.where):
                        return True
    names = context.names
    return collection == _COLLECTION and any(
        _COLLECTS.search(names.project.raw(other)) for other in names.imported_files
    )


def _collection_name(context: Context, collection: ast.expr, where: Where) -> str:
    """Return the name of a collection: a text, or the dotted name of one of TensorFlow's."""
    value = boxed_constant(collection)
    return str(value[0]) if value else context.resolve(collection, where) or ""
