"""The attributes that npu_shim replaces in this process, and how to restore them."""

from __future__ import annotations

from typing import Callable

from npu_shim._tensorflow.types import Function, Module

# Process state: what npu_shim replaced, until restore_all(). Only this module changes it.
_original_attributes: dict[tuple[type | Module, str], object] = {}
_to_undo: dict[Callable[[], None], None] = {}  # in the order in which they were added


def replace_attribute(owner: type | Module, name: str, make: Callable[[Function], object]) -> None:
    """Replace ``owner.name`` with ``make(original)``. Does nothing if it is replaced already."""
    if (owner, name) not in _original_attributes:
        original = owner.__dict__[name]
        setattr(owner, name, make(original))
        _original_attributes[owner, name] = original


def is_replaced(owner: type | Module, name: str) -> bool:
    """Return True if ``owner.name`` is replaced now."""
    return (owner, name) in _original_attributes


def register_undo(function: Callable[[], None]) -> None:
    """Let restore_all() call a function, once however often it is added."""
    _to_undo[function] = None


def restore_all() -> None:
    """Restore every original attribute, after the functions to undo."""
    while _to_undo:
        _to_undo.popitem()[0]()
    while _original_attributes:
        (owner, name), original = _original_attributes.popitem()
        setattr(owner, name, original)
