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
from ..tf_api.name_tables import SESSION_PARAMETERS
from .strategies import program_modules_matching
from .tensorflow_version import Version, version_verdict

_MAY_CREATE = re.compile(rb"[Ss]ession|stimator|Supervisor|learning|evaluat|train|npu_")
# Calls that the tool gives names of npu_init: they make sessions, or objects that make them.
_ESTIMATORS = READY_MADE | {"tensorflow.estimator.Estimator", "tensorflow.keras.estimator.model_to_estimator"}
_OF_NPU = ("npu_shim.npu_init.", "npu_shim.npu_device.")


def gets_session_patch(context: Context) -> bool:
    """Return True if a program of a file certainly imports npu_init once it is converted, or opens the NPU device."""
    judged = version_verdict(context)
    if judged.opens or judged.version == Version.BOTH and judged.is_trained:
        return True
    return context.names.once(_creates_session)


def _creates_session(names: Names) -> bool:
    return any(
        any(_takes_session_config(names_of, call) for call in names_of.calls)
        for names_of in program_modules_matching(names, _MAY_CREATE)
    )


def _takes_session_config(names: Names, call: Call) -> bool:
    name = names.resolve(call.node.func, call.where) or ""
    if name in SESSION_PARAMETERS:
        return not bind_arguments(call.node, SESSION_PARAMETERS[name]).hidden
    return name in _ESTIMATORS or name.startswith(_OF_NPU)
