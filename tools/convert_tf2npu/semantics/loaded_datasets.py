"""The types of what TensorFlow Datasets loads: a dataset, or several in a dictionary or list, with or without facts."""

from __future__ import annotations

import ast

from ..syntax.expressions import boxed_constant
from .tf_types import Type

LOAD = "tensorflow_datasets.load"
AS_DATASET = "as_dataset"


def type_of_loaded(call: ast.Call, part: str = "") -> Type | None:
    """Return the type of the result of ``tfds.load(...)`` or ``builder.as_dataset(...)``, or of a part of it.

    Args:
        call: the call.
        part: the position in the tuple that it returns, as in ``1.0``; the whole for an empty position.
    """
    given = {k.arg: k.value for k in call.keywords}
    if None in given:
        return None
    facts = boxed_constant(given["with_info"]) if "with_info" in given else (False,)
    if not facts:
        return None
    if facts[0]:
        if not part:
            return None
        first, _, part = part.partition(".")
        if first != "0":
            return None
    place = 0 if getattr(call.func, "attr", "") == AS_DATASET else 1
    split = given.get("split", call.args[place] if len(call.args) > place else None)
    several = split is None or isinstance(split, (ast.List, ast.Tuple)) or boxed_constant(split) == (None,)
    if part:
        return Type.DATASET if several and "." not in part else None
    return Type.DATASETS if several else Type.DATASET
