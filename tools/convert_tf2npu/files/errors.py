"""What ends a run with one line on the terminal."""

from __future__ import annotations


class UsageError(Exception):
    """Something the user asked for cannot be done; nothing was written."""
