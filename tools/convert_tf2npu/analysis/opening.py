"""Decide in which file the tool opens the NPU device."""

from __future__ import annotations

from ..project.context import Context
from .device_placement import in_test
from .entry_points import is_started
from .keras_backends import other_backends
from .tensorflow_version import verdict


def starts_training(context: Context) -> bool:
    """Return True if a file starts a program, no test, that trains and does not open the NPU device itself.

    A script that chooses a backend of Keras other than TensorFlow does not start one.
    """
    body = context.names.tree.body
    if not body or not is_started(context) or in_test(context, body[0]):
        return False
    found = verdict(context)
    return found.trains and not found.opens and not other_backends(context)


def opens_device(context: Context) -> bool:
    """Return True if the tool must open the NPU device in a file."""
    return starts_training(context) and verdict(context).is_two
