"""The code behind the names of the packages that vendor_package.py writes.

A function of one operator makes that operator. What training needs beyond that (optimizers that reduce gradients, loss
scales, scopes) is in ``training.py``. Everything else records the call and returns nothing.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, Callable, Mapping, NamedTuple

import op_library


class Call(NamedTuple):
    """A call of a name of the vendor: its path and its arguments by parameter."""

    path: str
    arguments: dict[str, Any]


CALLS: list[Call] = []
CODE: dict[str, Callable[..., Any]] = {}  # path below the package -> what its call does; filled by training.py


@functools.lru_cache(maxsize=None)
def ops() -> ModuleType:
    """Return the operator library."""
    return op_library.load()


def call(path: str, bound: Mapping[str, Any]) -> Any:
    """Run the code of a function, or return None if it has none."""
    CALLS.append(Call(path, dict(bound)))
    code = CODE.get(_below_package(path))
    return code(**bound) if code else None


def make(operator: str, path: str, bound: Mapping[str, Any]) -> Any:
    """Make the operator of a function."""
    CALLS.append(Call(path, dict(bound)))
    given = {key: value for key, value in bound.items() if key != "name"}
    places = op_library.places(operator, list(given))
    named = {place: given[parameter] for parameter, place in places.items()}
    if "num" in op_library.row(operator).attributes and not any(
        "num *" in kind for kind in op_library.row(operator).inputs.values()
    ):
        named.setdefault("num", 1)  # one table
    return getattr(ops(), op_library.python_name(operator))(**named, name=bound.get("name"))


def construct(path: str, bound: Mapping[str, Any]) -> Any:
    """Run the code of a constructor."""
    arguments = {key: value for key, value in bound.items() if key not in ("self", "cls", "__class__")}
    CALLS.append(Call(path, arguments))
    owner = bound.get("self", bound.get("cls"))
    code = CODE.get(_below_package(path))
    return code(owner, **arguments) if code else None


def method(path: str, bound: Mapping[str, Any]) -> Any:
    """Run the code of a method, or return None if it has none."""
    arguments = {key: value for key, value in bound.items() if key not in ("self", "cls", "__class__")}
    CALLS.append(Call(path, arguments))
    positional, named = arguments.pop("args", ()), arguments.pop("kwargs", {})
    code = CODE.get(_below_package(path))
    return code(bound.get("self", bound.get("cls")), *positional, **arguments, **named) if code else None


def constant(path: str) -> Any:
    """Return the value of a name that is neither a function nor a class."""
    name = path.rpartition(".")[2]
    return ops() if name in ("npu_aicore_ops", "npu_unary_ops", "gen_npu_ops") else f"<{path}>"


def _below_package(path: str) -> str:
    return path.replace("npu_device.compat.v1.", "npu_bridge.").partition(".")[2]


from vendor_code import training  # noqa: E402,F401  fills CODE
