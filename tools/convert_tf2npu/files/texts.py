"""Files beside scripts and notebooks that the tool reads, and never changes: those that start or configure a server."""

from __future__ import annotations

import os
import re

_ENDINGS = ".sh", ".bash", ".yml", ".yaml", ".config", ".conf", ".cfg", ".pbtxt", ".txt", "Dockerfile"
_MOST_BYTES = 100_000
_WORDS = re.compile(
    b"tensorflow_model_server|tensorflow/serving|max_batch_size|batching_parameters|model_platform|platform_configs"
)


def is_server_file(path: str) -> bool:
    """Return True for a file of such a name."""
    return path.endswith(_ENDINGS)


def has_server_words(path: str) -> bool:
    """Return True for a file of such a name with words that rules look for."""
    try:
        if not is_server_file(path) or os.path.getsize(path) > _MOST_BYTES:
            return False
        with open(path, "rb") as stream:
            return _WORDS.search(stream.read()) is not None
    except OSError:
        return False
