"""Work in parts, which some processes do at the same time."""

from __future__ import annotations

import marshal
from typing import Any, Callable, Sequence, Tuple

from ..files.errors import UsageError
from .processes import Channel, Process, may_fork, start
from .signals import held_back

Arguments = Tuple[Any, ...]


def in_parts(work: Callable[..., Any], parts: Sequence[Arguments]) -> list[Any]:
    """Call a function once for each part, for the first in this process and for the others in copies of it; one after the
    other where it cannot be copied.

    Args:
        work: returns what :mod:`marshal` takes.
        parts: its arguments.

    Returns:
        what it returned for each.

    Raises:
        OSError: it did for one of them.
        UsageError: a process was ended.
    """
    if not may_fork():
        return [work(*part) for part in parts]
    copies: list[Process] = []
    try:
        with held_back():
            for part in parts[1:]:
                copies.append(start(_serve, (work, part), copies))
        return [work(*parts[0])] + [_answer(copy.channel) for copy in copies]
    finally:
        with held_back():
            for copy in copies:
                copy.end()


def _answer(channel: Channel) -> Any:
    try:
        error, found = marshal.loads(channel.recv_bytes())
    except EOFError:
        raise UsageError("a process of the tool was ended from outside; nothing was written; try again with -j 1")
    if error:
        raise OSError(*error)
    return found


def _serve(channel: Channel, work: Callable[..., Any], part: Arguments) -> None:
    try:
        answer: tuple[Any, Any] = (None, work(*part))
    except OSError as error:
        answer = (error.errno, error.strerror), None
    channel.send_bytes(marshal.dumps(answer))
