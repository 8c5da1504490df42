"""Run tf.functions without XLA, which compiles no op that records."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf


def without_xla() -> None:
    """Make ``tf.function`` ignore jit_compile=True from now on."""
    original = tf.function

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        for name in ("jit_compile", "experimental_compile"):
            if kwargs.get(name):
                kwargs[name] = False
        return original(*args, **kwargs)

    for module in (tf, tf.compat.v2, tf.compat.v1):
        if getattr(module, "function", None) is original:
            setattr(module, "function", function)
