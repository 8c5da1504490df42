"""Lookup tables in the model.

A lookup table is in the memory of the host, and the NPU has no operation for it. In the input pipeline tables are
fine. The rule reports each kind of table once for each file.

* Look up in the function that ``dataset.map`` calls.
* Or, in TensorFlow 1, set ``mix_compile_mode=True`` on the session. This needs ``iterations_per_loop=1``.

A table that only functions of ``dataset.map`` use is not reported.

Reported::

    import tensorflow as tf

    def model_fn(features, labels, mode):
        table = tf.contrib.lookup.index_table_from_file('vocabulary.txt')
        ids = table.lookup(features['words'])

Untouched::

    import tensorflow as tf

    def input_fn():
        table = tf.contrib.lookup.index_table_from_file('vocabulary.txt')
        return tf.data.TextLineDataset(files).map(lambda line: table.lookup(line))

Untouched::

    import tensorflow as tf

    table = tf.lookup.StaticHashTable(initializer, 0)
    words = tf.data.TextLineDataset(files).map(lambda line: table.lookup(line))
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_first_call, runs_on_npu
from ...analysis.tensorflow_version import is_two
from ...semantics.model import Call
from ...tf_api.name_tables import names_of
from ..base import Context, Finding, Result

CODE = "NPU240"
CALLS = names_of("table")


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    if (
        runs_on_npu(context, call.node)
        and is_first_call(context, call, frozenset({name or ""}), context.names.tree)
        and not _is_for_input(context, call)
    ):
        other = "" if is_two(context) else ", or set mix_compile_mode=True on the session"
        yield Finding(call.node, "lookup tables are unsupported on the NPU. Look up in dataset.map{0}", other)


def _is_for_input(context: Context, call: Call) -> bool:
    """Return True if all uses of the name of a table are in code for input, and at least one is."""
    statement = context.names.parents.get(call.node)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Name):
        return False
    uses = [
        read
        for read, where in context.names.reads
        if read.id == target.id
        and isinstance(context.names.parents.get(read), ast.Attribute)
        and where.scope is not context.names.module  # where scripts try it
    ]
    return bool(uses) and not any(runs_on_npu(context, use) for use in uses)
