"""Python functions in the model.

A function called by ``tf.py_func`` runs in the Python process on the host; the card cannot run it, and
TensorFlow knows the shape of nothing it returns. In the input pipeline it is in its place.

Told::

    import tensorflow as tf

    def model_fn(features, labels, mode):
        score = tf.py_func(bleu, [predictions, labels], tf.float32)

Untouched::

    import tensorflow as tf

    dataset = tf.data.Dataset.range(8).map(lambda i: tf.py_func(load, [i], tf.float32))
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import runs_on_card
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ..base import Context, Finding, Result

CODE = "NPU237"
CALLS = frozenset(
    "tensorflow." + name
    for name in """py_func py_function numpy_function
contrib.eager.py_func contrib.framework.py_func""".split()
)


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    if runs_on_card(context, call.node):
        yield Finding(
            call.node,
            "{} runs Python on the host, which the card cannot do, and its result has no "
            "known shape; move it into the function that dataset.map calls (with set_shape), "
            "write it in TensorFlow, or give the session mix_compile_mode=True "
            "(with iterations_per_loop=1)".format(last_part(name)),
        )
