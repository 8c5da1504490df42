"""What became of a name of TensorFlow 1 in TensorFlow 2."""

from __future__ import annotations

import functools

from .v1_tables import DIFFERENT, GONE, MISSING, MODULES, ONLY_IN_2

V1 = "tensorflow.compat.v1"
LIFTED = MISSING | DIFFERENT
# What becomes of a name: it is in compat.v1 only, is something else there, is in TensorFlow 2 only (and not in
# compat.v1), is nowhere, or was part of tf.contrib. Of all others nothing is to be said.
ONLY_IN_V1, OTHERWISE, NEW, NOWHERE, OF_CONTRIB, SAME = "v1", "otherwise", "new", "nowhere", "contrib", ""
_TABLES = ((NOWHERE, GONE), (NEW, ONLY_IN_2), (ONLY_IN_V1, MISSING), (OTHERWISE, DIFFERENT))
_ABOVE: frozenset[str] = frozenset(
    name[:index] for name in LIFTED for index, char in enumerate(name) if char == "."
) | {""}


def rest_of(name: str) -> str:
    """``nn.dropout`` of ``tensorflow.nn.dropout`` and of ``tensorflow.compat.v1.nn.dropout``."""
    return (name[len(V1) :] if name == V1 or name.startswith(V1 + ".") else name).partition(".")[2]


@functools.lru_cache(maxsize=65536)
def became(name: str) -> str:
    """What became of a dotted name of TensorFlow 1, as the constants of this module say it."""
    parts = rest_of(name).split(".")
    if parts[0] == "contrib":
        return OF_CONTRIB
    prefixes = {".".join(parts[:cut]) for cut in range(1, len(parts) + 1)}
    return next((fate for fate, table in _TABLES if prefixes & table), SAME)


def is_lifted(name: str) -> bool:
    """Whether a dotted name means in TensorFlow 2 what it meant before only under compat.v1."""
    return became(name) in (ONLY_IN_V1, OTHERWISE)


def holds_lifted(name: str) -> bool:
    """Whether a module, or what else a dotted name means, is lifted or holds something that is."""
    return is_lifted(name) or rest_of(name) in _ABOVE


def is_module(name: str) -> bool:
    """Whether ``tensorflow.compat.v1`` has a module that can be imported by the rest of a dotted name."""
    rest = rest_of(name)
    return not rest or rest in MODULES


def lifted(name: str) -> str:
    """A dotted name as it is spelled below compat.v1."""
    rest = name.partition(".")[2]
    return V1 + "." + rest if rest else V1
