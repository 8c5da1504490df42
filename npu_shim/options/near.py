"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from typing import Iterable


def closest(name: str, among: Iterable[str]) -> str:
    """Return 'Did you mean ...?' with up to three close names, or an empty string."""
    folded = {candidate.lower(): candidate for candidate in among}
    near = [folded[n] for n in difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.6)]
    return f" Did you mean {' or '.join(near)}?" if near else ""
