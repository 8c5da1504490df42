"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from typing import Iterable


def did_you_mean(name: str, among: Iterable[str], prefix: str = "") -> str:
    """Return 'Did you mean ...?' with up to three close names, or an empty string.

    Args:
        name: the misspelt name.
        among: the names that exist.
        prefix: the beginning of all of them, which makes none closer.
    """
    folded = {candidate[len(prefix) :].lower(): candidate for candidate in among}
    near = [folded[n] for n in difflib.get_close_matches(name[len(prefix) :].lower(), folded, n=3, cutoff=0.6)]
    return f" Did you mean {' or '.join(near)}?" if near else ""
