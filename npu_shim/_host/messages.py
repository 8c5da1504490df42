"""Messages of npu_shim beside the output of a script."""

from __future__ import annotations

import sys


def report(text: str) -> None:
    """Write a message to standard error."""
    print(f"npu_shim: {text}", file=sys.stderr, flush=True)
