"""Keys of collectives and digests of requests."""

from __future__ import annotations

import hashlib
import struct

LABEL = " @ "
TOKEN_BYTES, DIGEST_BYTES = 8, 16


def collective_name(key: str) -> str:
    """Return the part of a key that identifies the collective; the text after LABEL is for messages only."""
    return key.split(LABEL, 1)[0]


def token_of_use(key: str, count: int) -> int:
    """Return the number, never 0, that identifies the count-th use of a key."""
    raw = hashlib.blake2b(
        collective_name(key).encode("utf-8"), digest_size=TOKEN_BYTES, salt=struct.pack("<Q", count)
    ).digest()
    return int.from_bytes(raw, "little") or 1


def request_digest(request: str) -> bytes:
    """Return the digest by which ranks compare their requests."""
    return hashlib.blake2b(request.encode("utf-8"), digest_size=DIGEST_BYTES).digest()
