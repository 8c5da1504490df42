"""The fate of names of TensorFlow 1 in TensorFlow 2."""

from __future__ import annotations

import functools

from .name_tables import DIFFERENT, GONE, MISSING, MODULES, ONLY_IN_2

V1 = "tensorflow.compat.v1"
LIFTED = MISSING | DIFFERENT
# The fates of a name: it is only in compat.v1; it has another meaning there; it is only in TensorFlow 2 and not in
# compat.v1; it was removed; it was part of tf.contrib; it means the same in both.
ONLY_IN_V1, OTHERWISE, NEW, NOWHERE, OF_CONTRIB, SAME = "v1", "otherwise", "new", "nowhere", "contrib", ""
_TABLES = ((NOWHERE, GONE), (NEW, ONLY_IN_2), (ONLY_IN_V1, MISSING), (OTHERWISE, DIFFERENT))
_ABOVE: frozenset[str] = frozenset(
    name[:index] for name in LIFTED for index, char in enumerate(name) if char == "."
) | {""}


def name_below_tensorflow(name: str) -> str:
    """Return ``nn.dropout`` for ``tensorflow.nn.dropout`` and ``tensorflow.compat.v1.nn.dropout``."""
    return (name[len(V1) :] if name == V1 or name.startswith(V1 + ".") else name).partition(".")[2]


@functools.lru_cache(maxsize=65536)
def fate_of_v1_name(name: str) -> str:
    """Return the fate of a dotted name of TensorFlow 1, one of the constants of this module."""
    parts = name_below_tensorflow(name).split(".")
    if parts[0] == "contrib":
        return OF_CONTRIB
    prefixes = {".".join(parts[:cut]) for cut in range(1, len(parts) + 1)}
    return next((fate for fate, table in _TABLES if prefixes & table), SAME)


def needs_compat_v1(name: str) -> bool:
    """Return True if a dotted name keeps its meaning in TensorFlow 2 only under compat.v1."""
    return fate_of_v1_name(name) in (ONLY_IN_V1, OTHERWISE)


def contains_compat_v1_names(name: str) -> bool:
    """Return True if a dotted name, or a name below it, is lifted."""
    return needs_compat_v1(name) or name_below_tensorflow(name) in _ABOVE


def is_compat_v1_module(name: str) -> bool:
    """Return True if the rest of a dotted name is an importable module of ``tensorflow.compat.v1``."""
    rest = name_below_tensorflow(name)
    return not rest or rest in MODULES


def compat_v1_spelling(name: str) -> str:
    """Return a dotted name as it is spelled below compat.v1."""
    rest = name.partition(".")[2]
    return V1 + "." + rest if rest else V1
