"""Decide if the programs of a file get the patch of sessions, which ``npu_shim.npu_init`` installs when it is imported.

It closes the sessions that are open when Python ends, and lets device scopes of graphs that name a GPU name the CPU.
"""

from __future__ import annotations

import re

from ..project.context import Context
from ..semantics.model import Call
from ..semantics.module_index import Names
from ..semantics.signatures import bind_arguments
from ..semantics.tf_types import READY_MADE
from ..syntax.expressions import last_part
from ..syntax.words import spread_word_pattern
from ..tf_api.name_tables import SESSION_PARAMETERS
from .program_calls import program_has_call
from .tensorflow_version import Version, version_verdict

# Calls that the tool gives names of npu_init: they make sessions, or objects that make them.
_ESTIMATORS = READY_MADE | {"tensorflow.estimator.Estimator", "tensorflow.keras.estimator.model_to_estimator"}
_OF_NPU = ("npu_shim.npu_init.", "npu_shim.npu_device.")
_WORDS = tuple(
    sorted({last_part(name).encode() for name in _ESTIMATORS.union(SESSION_PARAMETERS)} - {b"train"} | {b"npu_"})
)
# The module before this word counts, because it is in most files.
_TRAIN = re.compile(
    rb"ing(?<=learning|training)(?:"
    rb"(?:%s|\s+import\s(?:[^\n]*|\s*\([^)]*))train\b|\s+as\s)" % spread_word_pattern(".").encode()
)


def gets_session_patch(context: Context) -> bool:
    """Return True if a program of a file certainly imports npu_init once it is converted, or opens the NPU device."""
    judged = version_verdict(context)
    if judged.opens or judged.version == Version.BOTH and judged.is_trained:
        return True
    return program_has_call(context.names, _creates_session, _may_create_session)


def _may_create_session(raw: bytes) -> bool:
    """Return True if a file has a word of a call that makes a session; many searches are faster than a pattern."""
    return any(word in raw for word in _WORDS) or _TRAIN.search(raw) is not None


def _creates_session(names: Names) -> bool:
    return any(_takes_session_config(names, call) for call in names.calls)


def _takes_session_config(names: Names, call: Call) -> bool:
    name = names.resolve(call.node.func, call.where) or ""
    if name in SESSION_PARAMETERS:
        return not bind_arguments(call.node, SESSION_PARAMETERS[name]).hidden
    return name in _ESTIMATORS or name.startswith(_OF_NPU)
