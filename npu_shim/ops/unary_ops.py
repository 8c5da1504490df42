"""``npu_unary_ops`` and ``npu_aicore_ops``: the vendor's operators as attributes, as in ``npu_unary_ops.gelu(x)``."""

from __future__ import annotations

from typing import Callable

from npu_shim._tensorflow.types import Structure
from npu_shim.ops import generated


class Operators:
    """The vendor's library of operators, on the CPU.

    Args:
        name: how scripts call it.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Callable[..., Structure]:
        if name.startswith("_"):
            raise AttributeError(f"{self._name} has no attribute {name!r}")
        return generated.find_operator(name, self._name)

    def __dir__(self) -> list[str]:
        return generated.operator_names()


npu_unary_ops = Operators("npu_unary_ops")
npu_aicore_ops = Operators("npu_aicore_ops")
