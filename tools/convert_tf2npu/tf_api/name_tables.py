"""The names of TensorFlow and Keras by version, and the calls that the vendor's support lists warn about.

``tools/make_v1_names.py`` and ``tools/make_names_after_26.py`` make the tables from the versions of TensorFlow. Their
names have no root, and a module stands for all of its names. ``tools/make_api_support.py`` makes the table of support
from the lists for TensorFlow 1.15 and 2.6, and explains each choice.
"""

from __future__ import annotations

import json
import os
from typing import Any

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _read_table(name: str) -> dict[str, Any]:
    """Return the content of a table of JSON beside this module."""
    with open(os.path.join(_FOLDER, name), encoding="utf-8") as stream:
        table: dict[str, Any] = json.load(stream)
    return table


_V1 = _read_table("v1_names.json")
# TensorFlow 2 has them under tf.compat.v1 only.
MISSING: frozenset[str] = frozenset(_V1["missing"])
# TensorFlow 2 has them under tf.compat.v1, and another object of the same name outside of it.
DIFFERENT: frozenset[str] = frozenset(_V1["different"])
# TensorFlow 2 has them, but not under tf.compat.v1.
ONLY_IN_2: frozenset[str] = frozenset(_V1["only_in_2"])
# A later version of TensorFlow removed them.
GONE: frozenset[str] = frozenset(_V1["gone"])
# The modules below tensorflow.compat.v1 that can be imported in all versions.
MODULES: frozenset[str] = frozenset(_V1["modules"])
# The number of arguments that may stay positional, and the removed argument names.
CHANGED: dict[str, tuple[int, str]] = {name: (kept, removed) for name, (kept, removed) in _V1["changed"].items()}
# Names of tf.contrib for objects that TensorFlow's core has under another name.
CONTRIB: dict[str, str] = _V1["contrib"]
_CONTRIB = _read_table("contrib_replacements.json")
# Other names of tf.contrib that have a replacement, and those of functions that take other arguments there.
CONTRIB_BY_HAND: dict[str, str] = _CONTRIB["plain"]
CONTRIB_CHANGED: dict[str, dict[str, Any]] = _CONTRIB["changed"]
# Names removed from private modules, as name=public if there is a public name.
PRIVATE: dict[str, str] = _V1["private"]

_SPELLINGS = _read_table("spellings.json")
# Private modules whose names are all public in one module.
PUBLIC_MODULES: dict[str, str] = _SPELLINGS["modules"]
# Names that are public in two places, and their canonical spelling.
CANONICAL_NAMES: dict[str, str] = _SPELLINGS["same"]

_AFTER_26 = _read_table("names_after_26.json")
# The public names of TensorFlow 2.15, and of Keras in 2.21, that 2.6 lacks.
NAMES_AFTER_26: frozenset[str] = frozenset(_AFTER_26["names"])
# The arguments that functions and constructors got later, joined by spaces.
ARGUMENTS_AFTER_26: dict[str, str] = _AFTER_26["arguments"]

# The public names of modules of tf.keras in all versions.
KERAS_NAMES: dict[str, frozenset[str]] = {
    module: frozenset(names) for module, names in _read_table("keras_names.json").items()
}


def _parameters_by_call(section: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(words.split()) for name, words in _read_table("parameters.json")[section].items()}


# The parameters of functions and methods that make a session, and of others whose calls rules read. They are written by
# hand; a test compares them with TensorFlow 1.15.
SESSION_PARAMETERS = _parameters_by_call("sessions")
SESSION_METHOD_PARAMETERS = _parameters_by_call("session_methods")
PARAMETERS = _parameters_by_call("others")

_SUPPORT = _read_table("support.json")
# The calls to warn about, with a kind for each.
SUPPORT: dict[str, str] = _SUPPORT["kinds"]
# The names of compat.v1 that only the list for TensorFlow 2.6 excludes.
AVOID_IN_2: frozenset[str] = frozenset(_SUPPORT["avoid_in_2"])
# The names for eager code that the list for TensorFlow 2.6 excludes.
EXCLUDED_IN_2: frozenset[str] = frozenset(_SUPPORT["excluded_in_2"])


def calls_of_kind(kind: str) -> frozenset[str]:
    """Return the calls of a kind."""
    return frozenset(name for name, its in SUPPORT.items() if its == kind)
