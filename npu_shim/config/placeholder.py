"""Stand-ins for classes that need tf.estimator, on a TensorFlow that no longer has it."""

from __future__ import annotations

from typing import Any

from npu_shim import _tf


def needs_estimator(name: str, doc: str) -> type:
    """A class that can be imported and used with isinstance, and raises one clear error when it is called."""

    def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(_tf.no_estimator_text(name))

    text = f"{doc}\n\nThis TensorFlow has no tf.estimator: calling it raises RuntimeError."
    return type(name, (), {"__doc__": text, "__new__": __new__})
