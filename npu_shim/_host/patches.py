"""The attributes and environment variables that npu_shim replaces in this process, and how to restore them."""

from __future__ import annotations

from typing import Callable, Mapping

from npu_shim._host import host_env
from npu_shim._tensorflow.types import Function

# Process state: what npu_shim replaced, until restore_all(). Only this module changes it.
_original_attributes: dict[tuple[type, str], object] = {}
_set_variables: dict[str, str] = {}
_to_undo: dict[Callable[[], None], None] = {}  # in the order in which they were added


def replace_attribute(owner: type, name: str, make: Callable[[Function], object]) -> None:
    """Replace ``owner.name`` with ``make(original)``. Does nothing if it is replaced already."""
    if (owner, name) not in _original_attributes:
        original = owner.__dict__[name]
        setattr(owner, name, make(original))
        _original_attributes[owner, name] = original


def is_replaced(owner: type, name: str) -> bool:
    """Return True if ``owner.name`` is replaced now."""
    return (owner, name) in _original_attributes


def set_missing_environment_variables(variables: Mapping[str, str]) -> None:
    """Set variables that the environment does not have yet."""
    _set_variables.update(variables)
    host_env.process_environ().update(variables)


def register_undo(function: Callable[[], None]) -> None:
    """Let restore_all() call a function, once however often it is added."""
    _to_undo[function] = None


def restore_all() -> None:
    """Restore every original attribute, and remove the variables that were set and not changed since."""
    while _to_undo:
        _to_undo.popitem()[0]()
    while _original_attributes:
        (owner, name), original = _original_attributes.popitem()
        setattr(owner, name, original)
    environ = host_env.process_environ()
    while _set_variables:
        name, value = _set_variables.popitem()
        if environ.get(name) == value:
            del environ[name]
