"""Evidence for the version of TensorFlow that a file is written for, where its names alone do not show it."""

from __future__ import annotations

import ast
from typing import AbstractSet

from ..tf_api.v1_fate import name_below_tensorflow
from .module_index import Names
from .tf_types import Type
from .types import TypeInference

_EAGER = frozenset({"GradientTape", "function", "config.run_functions_eagerly"})


def may_have_used_gelu(names: Names) -> bool:
    """Return True if a file may have used the gelu of TensorFlow 2, which another rule replaces."""
    return any(
        names.resolve(call.node.func, call.where) == "npu_shim.npu_init.npu_unary_ops.gelu" for call in names.calls
    )


def is_written_for_tf2(names: Names, used_names: AbstractSet[str]) -> bool:
    """Return True if a file is written for TensorFlow 2, though it uses no new name of it.

    Args:
        names: its names.
        used_names: the dotted names of TensorFlow that it uses.
    """
    if any(name_below_tensorflow(name) in _EAGER for name in used_names) or any(
        isinstance(call.node.func, ast.Attribute) and call.node.func.attr == "numpy" and not call.node.args
        for call in names.calls
    ):
        return True
    types = TypeInference(names)
    return any(
        isinstance(statement, (ast.For, ast.AsyncFor)) and types.type_of(statement.iter, where) == Type.DATASET
        for statement, where in names.places.items()
    )
