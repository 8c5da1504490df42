"""Decide if mixed computing, which keeps operations on the host, needs more than its option."""

from __future__ import annotations

from ..project.context import Context
from .eager_training import texts_of_file_and_importers

OPTION = "mix_compile_mode"
_NORMALIZES = b"batch_norm", b"BatchNorm"
_HORIZON = b"forward_compatibility_horizon"


def advice_for_batch_normalization(context: Context) -> str:
    """Return how advice to set the option ends: batch normalization of TensorFlow 1.15 needs more."""
    return context.once(_further_need)


def _further_need(context: Context) -> str:
    texts = texts_of_file_and_importers(context)
    if any(word in raw for raw in texts for word in _NORMALIZES) and not any(_HORIZON in raw for raw in texts):
        return ", and build batch normalization in tf.compat.forward_compatibility_horizon(2019, 5, 1)"
    return ""
