"""File patterns similar to those of .gitignore.

A pattern without a slash matches any part of a path (``tests``, ``*_pb2.py``). One with a slash matches the whole path
or a folder above it (``third_party/models``, ``data/**/old_*.py``). ``*`` and ``?`` stop at a slash, ``**`` does not.
"""

from __future__ import annotations

import functools
import re
from typing import Iterable, Pattern


def matches_any_glob(path: str, patterns: Iterable[str]) -> bool:
    """Return True if a path matches one of some patterns.

    Args:
        path: relative, with slashes.
        patterns: the patterns.
    """
    parts = path.split("/")
    for pattern in patterns:
        if "/" in pattern.rstrip("/"):
            expression = _regex_of_glob(pattern.strip("/"))
            if any(expression.match("/".join(parts[:n])) for n in range(1, len(parts) + 1)):
                return True
        elif any(_regex_of_glob(pattern.rstrip("/")).match(part) for part in parts):
            return True
    return False


@functools.lru_cache(maxsize=1024)
def _regex_of_glob(pattern: str) -> Pattern[str]:
    pieces = []
    for token in re.findall(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\]|.", pattern, re.DOTALL):
        if token == "**/":
            pieces.append("(?:.*/)?")
        elif token == "**":
            pieces.append(".*")
        elif token == "*":
            pieces.append("[^/]*")
        elif token == "?":
            pieces.append("[^/]")
        elif token[0] == "[" and len(token) > 1:
            inner = token[1:-1].replace("\\", "\\\\")
            pieces.append(f"[{'^' + inner[1:] if inner.startswith('!') else inner}]")
        else:
            pieces.append(re.escape(token))
    return re.compile("".join(pieces) + r"\Z", re.DOTALL)
