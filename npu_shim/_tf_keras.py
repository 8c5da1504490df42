"""Private parts of Keras."""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

if TYPE_CHECKING:
    from npu_shim._types import Optimizer, Variable


def build_optimizer(optimizer: Optimizer, variables: Sequence[Variable]) -> None:
    """Make the slot variables of an optimizer, which Keras otherwise makes with the first gradients."""
    build = getattr(optimizer, "build", None) or getattr(optimizer, "_create_all_weights", None)  # Keras before 2.11
    if build is not None:
        build(list(variables))


def built_variables(optimizer: Optimizer) -> list[Variable]:
    """Return the variables for which a Keras 3 optimizer was built, which its apply() uses by default."""
    return list(optimizer._trainable_variables)
