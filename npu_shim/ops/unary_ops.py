"""``npu_unary_ops``: the object scripts call ``npu_unary_ops.gelu(x)`` on."""

from __future__ import annotations

from typing import Any

from npu_shim._lazy_names import NotInThisRelease


class UnaryOps:
    """The vendor has a module of generated ops here; of them, gelu is part of this release."""

    def gelu(self, features: Any, name: str | None = None) -> Any:
        """Gelu in tanh form: npu_shim.ops.gelu.gelu."""
        from npu_shim.ops.gelu import gelu

        return gelu(features, name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotInThisRelease(
            f"npu_unary_ops.{name} is not part of this release of npu_shim; npu_unary_ops.gelu is. Write it in "
            "TensorFlow's own ops."
        )


npu_unary_ops = UnaryOps()
