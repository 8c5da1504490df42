"""Find the rewrites with which a program departs from its original."""

from __future__ import annotations

from typing import Callable, Sequence


def departing_rewrites(rewrites: Sequence[str], agrees: Callable[[Sequence[str]], bool]) -> list[str] | None:
    """Return the rewrites that must be left out for the program to agree.

    One is found at a time, by halving. With n rewrites and k culprits it takes about k log2(n) verifications.

    Args:
        rewrites: that may be left out; with all of them the program departs.
        agrees: returns True if the program agrees without some of them.
    Returns:
        The culprits in the order in which they are found; None if the program departs also without all.
    """
    if not rewrites or not agrees(rewrites):
        return None
    left_out: list[str] = []
    while True:
        rest = [rewrite for rewrite in rewrites if rewrite not in left_out]
        departs, agreed = 0, len(rest)  # without so many of the first ones
        while agreed - departs > 1:
            middle = (departs + agreed) // 2
            if agrees([*left_out, *rest[:middle]]):
                agreed = middle
            else:
                departs = middle
        left_out.append(rest[agreed - 1])
        if agrees(left_out):
            return left_out
