"""Errors that end a run with one line on the terminal."""

from __future__ import annotations

from .message import Message


class UsageError(Exception):
    """The request cannot be done; nothing was written.

    Args:
        template, values: of the message.
    """

    def __init__(self, template: str, *values: object) -> None:
        super().__init__(Message(template, *values))
