"""Loops and branches in the style that a test asks for."""

from __future__ import annotations

import contextlib
from typing import Iterator

import tensorflow as tf

v1 = tf.compat.v1


@contextlib.contextmanager
def control_flow_v2(on: bool) -> Iterator[None]:
    """Builds loops and branches in the second style, or in the first."""
    before = v1.control_flow_v2_enabled()
    (v1.enable_control_flow_v2 if on else v1.disable_control_flow_v2)()
    try:
        yield
    finally:
        (v1.enable_control_flow_v2 if before else v1.disable_control_flow_v2)()
