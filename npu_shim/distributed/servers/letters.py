"""Letters between ranks; a message of two byte arrays has several small letters or a large one."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

HELLO, ANNOUNCE, PART, BROKEN, LEFT, WAKE, ASK, ANSWER = range(8)
_HEAD = struct.Struct("<IIQQQQII")
_OUTSIDE = 0xFFFFFFFF  # the length of a body that travels in the second array
INLINE_BYTES = 16 << 10


class Letter(NamedTuple):
    """One.

    ``life`` is the random number of the sending process, ``to_life`` that of the
    process that it is meant for, 0 where that is not known. ``group`` and ``call``
    say which collective it belongs to, ``part`` which piece of its numbers.
    """

    kind: int
    sender: int
    life: int
    to_life: int
    group: int
    call: int
    part: int
    body: np.ndarray


def pack(letters: list[Letter]) -> tuple[np.ndarray, np.ndarray]:
    """A message; only the last letter may have a body of more than INLINE_BYTES."""
    parts: list[bytes] = []
    outside = np.empty(0, np.uint8)
    for *fields, body in letters:
        inside = len(body) <= INLINE_BYTES
        parts.append(_HEAD.pack(*fields, len(body) if inside else _OUTSIDE))
        if inside:
            parts.append(body.tobytes())
        else:
            outside = body
    return np.frombuffer(b"".join(parts), np.uint8), outside


def unpack(head: np.ndarray, outside: np.ndarray) -> list[Letter]:
    """The letters of a message, in the order in which they were sent."""
    letters, at = [], 0
    raw: Any = head
    while at < len(head):
        kind, sender, life, to_life, group, call, part, length = _HEAD.unpack_from(raw, at)
        at += _HEAD.size
        inside = 0 if length == _OUTSIDE else length
        letters.append(
            Letter(
                kind,
                sender,
                life,
                to_life,
                group,
                call,
                part,
                outside if length == _OUTSIDE else head[at : at + inside],
            )
        )
        at += inside
    return letters


def of_text(text: str) -> np.ndarray:
    """A text as a body."""
    return np.frombuffer(text.encode("utf-8"), np.uint8)


def text_of(body: np.ndarray) -> str:
    """The text of a body."""
    return body.tobytes().decode("utf-8")
