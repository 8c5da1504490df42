"""The history of a run as scalars for TensorBoard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from npu_shim.rehearsal.numerics.history import Step, layer_norms
from npu_shim.rehearsal.recording.summaries import OWN_WRITER

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import EventWriter


v1 = tf.compat.v1
PREFIX = "numerics"


class Events:
    """Writes an event file with TensorFlow's own writer.

    The writer is made for the first step. Before the script, TensorFlow would begin in eager mode for it. The script
    may switch eager mode off, and variables of branches would still be eager ones.

    Args:
        folder: of the file.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._made: EventWriter = None

    @property
    def _writer(self) -> EventWriter:
        if self._made is None:
            with tf.Graph().as_default():  # the writer is not for eager mode, but needs no graph
                self._made = v1.summary.FileWriter(self._folder, filename_suffix=".numerics")
            setattr(self._made, OWN_WRITER, True)
        return self._made

    def add(self, step: Step, with_norms: bool) -> None:
        """Write the scalars of a step.

        Args:
            step: the step.
            with_norms: True to write the norm of each gradient and layer, too.
        """
        values = {
            "gradient_norm": step.norm,
            "ops_with_inf_or_nan": float(len(step.ops)),
            "skipped": float(step.skipped),
        }
        values.update({"loss": step.loss} if step.loss is not None else {})
        values.update({"loss_scale": step.scale} if step.scale is not None else {})
        if with_norms:
            values.update({f"gradient_norm/{name}": norm for name, norm in step.norms.items()})
            values.update({f"layer_norm/{name}": norm for name, norm in layer_norms(step.norms).items()})
        mark = f"_of_optimizer_{step.optimizer + 1}" if step.optimizer else ""
        summary = v1.Summary(
            value=[v1.Summary.Value(tag=f"{PREFIX}{mark}/{name}", simple_value=value) for name, value in values.items()]
        )
        self._writer.add_summary(summary, step.step)

    def close(self) -> None:
        """Write what is left and close the file."""
        if self._made is not None:
            self._made.close()
