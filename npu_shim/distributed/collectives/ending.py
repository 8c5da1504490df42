"""What a rank that leaves its job says to those who need it."""

from __future__ import annotations

import sys


def how_it_ended() -> str:
    """'has ended ...', with the error that ends this process where there is one."""
    error = getattr(sys, "last_value", None)
    if error is None:
        return "has ended (its script is over)"
    return f"has ended with {type(error).__name__}: {error}"
