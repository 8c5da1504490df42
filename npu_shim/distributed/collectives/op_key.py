"""By what a collective is known, and what is compared of it."""

from __future__ import annotations

import hashlib
import struct

LABEL = " @ "
TOKEN_BYTES, DIGEST_BYTES = 8, 16


def name_of(key: str) -> str:
    """The part of a key that ranks know a collective by: what follows LABEL is for people."""
    return key.split(LABEL, 1)[0]


def token_of(key: str, count: int) -> int:
    """What the count-th use of a key is known by; never 0."""
    raw = hashlib.blake2b(name_of(key).encode("utf-8"), digest_size=TOKEN_BYTES, salt=struct.pack("<Q", count)).digest()
    return int.from_bytes(raw, "little") or 1


def digest_of(asked: str) -> bytes:
    """What ranks compare of what they ask for."""
    return hashlib.blake2b(asked.encode("utf-8"), digest_size=DIGEST_BYTES).digest()
