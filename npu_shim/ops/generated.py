"""The vendor's library of operators: operators.json says which is computed where, and which exist on the NPU only.

``npu.gen_npu_ops``, ``npu_unary_ops`` and ``npu_aicore_ops`` give access to them. The names and arguments are those of
the functions that TensorFlow generates for the vendor's operators.
"""

from __future__ import annotations

import importlib
from typing import Callable

from npu_shim._tensorflow.types import Structure
from npu_shim.ops import npu_only
from npu_shim.options.near import did_you_mean

# The module below npu_shim.ops, and the name there, which is another one where the vendor has both
_HOME_OF = {name: (home, name) for home, names in npu_only.TABLE["operators"].items() for name in names.split()}
_HOME_OF.update((name, tuple(path.split("."))) for name, path in npu_only.TABLE["operators_by_other_functions"].items())
_ONLY_ON_NPU = [name for name in npu_only.ROWS if name not in npu_only.NOT_OPERATORS]


def operator_names() -> list[str]:
    """Return the names of all operators of the vendor's library."""
    return sorted([*_HOME_OF, *_ONLY_ON_NPU])


def find_operator(name: str, owner: str) -> Callable[..., Structure]:
    """Return an operator. One that exists on the NPU only raises OnlyOnNPU when it is called.

    Args:
        name: its name, as "fast_gelu".
        owner: how scripts call the library, for messages.
    Raises:
        AttributeError: the library has no such operator.
    """
    if name in _HOME_OF:
        home, own_name = _HOME_OF[name]
        function: Callable[..., Structure] = getattr(importlib.import_module(f"npu_shim.ops.{home}"), own_name)
        return function
    if name not in _ONLY_ON_NPU:
        raise AttributeError(f"{owner} has no operator {name!r}.{did_you_mean(name, operator_names())}")
    return npu_only.make_raising_function(owner, name)
