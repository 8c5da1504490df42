"""Checks of arguments that more than one package needs."""

from __future__ import annotations


def check_positive_int(value: object, name: str) -> None:
    """Raise an error if an argument is not an int of at least 1.

    Args:
        value: the argument.
        name: its name, for the message.
    Raises:
        TypeError: if it is not an int.
        ValueError: if it is less than 1.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r} is not allowed: it must be an int of at least 1.")
    if value < 1:
        raise ValueError(f"{name}={value} is not allowed: it must be an int of at least 1.")
