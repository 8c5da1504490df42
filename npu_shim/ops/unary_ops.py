"""``npu_unary_ops``: the object on which scripts call ``npu_unary_ops.gelu(x)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from npu_shim._types import Tensor


class UnaryOps:
    """The vendor's module of generated ops, of which gelu is part of this release."""

    def gelu(self, features: Tensor, name: str | None = None) -> Tensor:
        """Return gelu in tanh form; see npu_shim.ops.gelu.gelu."""
        from npu_shim.ops.gelu import gelu

        return gelu(features, name)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(  # not NotInThisRelease, because TensorFlow asks whether an attribute exists
            f"npu_unary_ops.{name} is not part of this release of npu_shim; npu_unary_ops.gelu is. Write it in "
            "TensorFlow's own ops."
        )


npu_unary_ops = UnaryOps()
