"""Keras Dropout layers that use the dropout of TensorFlow.

A ``Dropout`` layer works on the NPU, but with the operations of TensorFlow instead of the NPU operator. Import
``npu_convert_dropout`` from ``npu_shim.estimator.npu`` to use the NPU operator in all Dropout layers of the process.
The rule does not add this import, because it affects the whole process. It does with facts of ``npu-shim observe``, if
every layer of the file that ran was called in a graph and may drop there. A layer that ran in eager code only, or in
functions of TensorFlow 2, or never in training, is not reported.

Untouched::

    import tensorflow.compat.v1 as tf

    layer = tf.keras.layers.Dropout(0.1)

Untouched::

    from mylayers import Dropout
    import tensorflow as tf

    layer = Dropout(0.1)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.tensorflow_version import is_tf2_program
from ...facts.kinds import LAYER
from ...facts.seen import Seen
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ..base import Change, Context, Finding, Question
from .training_dropouts import SWITCH, is_switched

CODE = "NPU201"
ONCE_A_FILE = True
_SWITCHED = frozenset({"tensorflow.keras.layers.Dropout", "tensorflow.layers.Dropout"})
CALLS = _SWITCHED | {
    "tensorflow.keras.layers.SpatialDropout1D",
    "tensorflow.keras.layers.SpatialDropout2D",
    "tensorflow.keras.layers.SpatialDropout3D",
}


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    if is_switched(context) or is_tf2_program(context):
        return
    seen = context.observed_at(CODE, LAYER, call.node)
    if seen is not None and _needs_no_operator(context, call.node, seen):
        return
    layers = context.once(_observed_dropping_layers_by_call)
    if layers and name in _SWITCHED and all(map(_drops_in_graphs, layers.values())):
        if call.node in layers:
            runs = layers[call.node].runs
            yield Change(call.node, "dropout of Keras replaced with the NPU operator", (), (SWITCH,), runs)
        return
    yield Finding(
        call.node,
        "{0} uses the dropout of TensorFlow. For the NPU operator write "
        '"from npu_shim.estimator.npu import npu_convert_dropout"',
        last_part(name),
        asks=(Question(LAYER, call.node),),
    )


def _observed_dropping_layers_by_call(context: Context) -> dict[ast.Call, Seen]:
    """Return what runs saw of the layers of a file that the import switches, and that may drop."""
    seen = {
        node: context.observed_at(CODE, LAYER, node) for node, name in context.called_names.items() if name in _SWITCHED
    }
    dropping = {node: layer for node, layer in seen.items() if layer is not None}
    return {node: layer for node, layer in dropping.items() if not _needs_no_operator(context, node, layer)}


def _needs_no_operator(context: Context, node: ast.Call, seen: Seen) -> bool:
    """Return True if a layer ran in no graph but functions of TensorFlow 2, or never dropped."""
    if seen.only("in") == "eager" or seen.only("training") is False:
        return True
    is_in_function = {*(seen.all("in") or ())} in ({"function"}, {"eager", "function"})
    return is_in_function and context.ran_with_tensorflow("2.", CODE, node)


def _drops_in_graphs(seen: Seen) -> bool:
    return seen.only("in") == "graph"
