"""Lookup tables in the model.

A lookup table is in the memory of the host, and the NPU has no operation for it. In the input pipeline tables are
fine. The rule reports each kind of table once for each file.

* Look up in the function that ``dataset.map`` calls.
* Or set ``mix_compile_mode=True`` on the session. This needs ``iterations_per_loop=1``.

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
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import first_call, runs_on_npu
from ...semantics.model import Call
from ...tf_api.support import names_of
from ..base import Context, Finding, Result

CODE = "NPU240"
CALLS = names_of("table")


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    if runs_on_npu(context, call.node) and first_call(context, call, frozenset({name or ""}), context.names.tree):
        yield Finding(
            call.node,
            "lookup tables are unsupported on the NPU. "
            "Look up in dataset.map, or set mix_compile_mode=True on the session",
        )
