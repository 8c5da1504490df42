"""Names of tensors and variables in a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Value


OF_OPTIMIZER = " of optimizer "  # between a name and the number of its optimizer


def plain_name(value: Value) -> str:
    """Return the name of a variable (its path with Keras 3) or a tensor, without the number of the first output."""
    name = getattr(value, "path", None) or getattr(value, "name", None) or "unnamed"
    return name[:-2] if name.endswith(":0") else str(name)
