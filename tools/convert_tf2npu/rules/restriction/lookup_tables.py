"""Lookup tables in the model.

A table lives in the host's memory. In the input pipeline that is where it is needed; in the model it is
an operation that the card does not have. Told once for each kind of table in a file.

Told::

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

from ...analysis.device_placement import first_call, runs_on_card
from ...semantics.model import Call
from ...tf_api.support import names_of
from ..base import Context, Finding, Result

CODE = "NPU240"
CALLS = names_of("table")


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    if runs_on_card(context, call.node) and first_call(context, call, frozenset({name or ""}), context.names.tree):
        yield Finding(
            call.node,
            "tables stay on the host; look up in the function that dataset.map calls, "
            "or if the model itself must look up, give the session mix_compile_mode=True (with "
            "iterations_per_loop=1)",
        )
