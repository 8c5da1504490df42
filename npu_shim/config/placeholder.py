"""Replacements for classes that need tf.estimator, for TensorFlow versions without it."""

from __future__ import annotations

from typing import NoReturn

from npu_shim._tensorflow import tf_api


def make_placeholder_class(name: str, doc: str) -> type:
    """Return a class for imports and isinstance checks that raises RuntimeError when it is called."""

    def __new__(cls: type, *args: object, **kwargs: object) -> NoReturn:
        raise RuntimeError(tf_api.no_estimator_text(name))

    text = f"{doc}\n\nThis TensorFlow has no tf.estimator: calling it raises RuntimeError."
    return type(name, (), {"__doc__": text, "__new__": __new__})
