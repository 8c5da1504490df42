"""Dropout layers of Keras: where they are called, and if they drop there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._tensorflow import tf_api
from npu_shim.rehearsal.observing.graphs import context_of_new_ops
from npu_shim.rehearsal.recording import methods

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

    from npu_shim._tensorflow.types import Function, KerasLayer, Result, Value

tf = tf_api.tf
_SEEN = "_npu_shim_seen"  # attribute of a layer that is watched


def note_layer(seen: Seen, value: Value) -> Value:
    """Note of each call of a dropout layer where it is as ``in``, and ``training``: a bool, None, or ``tensor``."""
    if isinstance(value, tf.keras.layers.Dropout):
        object.__setattr__(value, _SEEN, seen)
    return value


def watch_layers() -> None:
    """Watch the calls of dropout layers."""
    methods.wrap_methods(tf.keras.layers.Dropout, ("call",), _note_layer_call)


@tf.autograph.experimental.do_not_convert
def _note_layer_call(original: Function, layer: KerasLayer, inputs: Value, training: Value = None) -> Result:
    seen = getattr(layer, _SEEN, None)
    if seen is not None:
        is_python = training is None or isinstance(training, (bool, int))
        seen.note("in", context_of_new_ops())
        seen.note("training", "tensor" if not is_python else None if training is None else bool(training))
    return original(layer, inputs, training=training)
