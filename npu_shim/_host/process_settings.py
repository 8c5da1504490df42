"""The settings of a process that npu_shim starts, as text: one argument of its command, or one line of a message."""

from __future__ import annotations

import base64
import pickle
from typing import TypeVar

_Settings = TypeVar("_Settings")


def encode_settings(settings: object) -> str:
    """Return an object of a class with a name as a word of ASCII."""
    return base64.b64encode(pickle.dumps(settings)).decode("ascii")


def decode_settings(text: str, kind: type[_Settings]) -> _Settings:
    """Return the object of a class that to_text() has written."""
    settings = pickle.loads(base64.b64decode(text))
    assert isinstance(settings, kind)
    return settings
