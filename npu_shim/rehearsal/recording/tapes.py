"""Record the loss and the gradients of tf.GradientTape, before an optimizer or the script changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import numpy as np
import tensorflow as tf

from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.names import plain_name
from npu_shim.rehearsal.recording.recorder import LOSS, TAPE, Recorder

if TYPE_CHECKING:
    from npu_shim._types import Structure


def watch_tapes(recorder: Recorder) -> None:
    """Record each call of ``GradientTape.gradient``, in eager code and in each run of a tf.function."""

    def gradient(original: Callable[..., Any], tape: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(tape, target, sources, *args, **kwargs)
        rows = [(LOSS, f"target {n}" if n else "loss", value) for n, value in enumerate(_tensors(target))]
        for number, (source, value) in enumerate(zip(tf.nest.flatten(sources), tf.nest.flatten(result))):
            name = plain_name(source) if hasattr(source, "assign") else f"source {number}"
            rows += [(TAPE, name, tensor) for tensor in _tensors(getattr(value, "values", value))]
        names = [(kind, name) for kind, name, _ in rows]

        def record(*arrays: np.ndarray) -> np.ndarray:
            recorder.tensors([name + (np.asarray(array),) for name, array in zip(names, arrays)])
            return np.zeros((), np.int64)

        if tf.executing_eagerly():
            record(*[value for _, _, value in rows])
        elif getattr(tf.compat.v1.get_default_graph(), "building_function", False):
            tf.numpy_function(record, [value for _, _, value in rows], tf.int64)
        return result

    methods.wrap(tf.GradientTape, ("gradient",), gradient)


def _tensors(structure: Structure) -> list[Any]:
    """Return the tensors of numbers of a structure."""
    return [
        each
        for each in tf.nest.flatten(structure)
        if isinstance(each, tf.Tensor) and (each.dtype.is_floating or each.dtype.is_complex)
    ]
