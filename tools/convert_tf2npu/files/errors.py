"""Errors that end a run with one line on the terminal."""

from __future__ import annotations


class UsageError(Exception):
    """The request cannot be done; nothing was written."""
