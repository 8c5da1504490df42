"""What is said of ranks that ask for different things, or do not come."""

from __future__ import annotations

from typing import Sequence


def difference(key: str, first: tuple[str, str], other: tuple[str, str]) -> str:
    """Two ranks, each by its name and what it asks for."""
    return f"{key}: {first[0]} asks for {first[1]}, {other[0]} for {other[1]}: it must be the same on every rank."


def stall(
    what: str, waited_s: float, here: Sequence[str], absent: Sequence[tuple[str, Sequence[str]]], silent: str
) -> str:
    """Who waits for which collective, and who has not come.

    Args:
        what: the collective, and what is asked for.
        waited_s: seconds.
        here: names of the ranks that reached it.
        absent: names of those that did not, each with the keys of the collectives it waits for.
        silent: name of the rank that does not answer, where all have reached it.
    """
    lines = [f"{what} waited {waited_s:g} s. It was reached by {', '.join(here)}, and not by:"]
    for name, keys in absent:
        lines.append(f"  {name}, which {'waits for ' + ', '.join(keys) if keys else 'is in no collective'}")
    if not absent:
        lines.append(f"  nobody, but {silent}, which gives the turns, does not answer")
    elif all(keys for _, keys in absent):
        lines.append(
            "The ranks wait for each other: each is in a collective that another has not reached. Call them in "
            "the same order on every rank, or on as many threads as there are collectives (a session whose "
            "config is from npu_shim.session_config has one for each that is in its graph when it is made, "
            "and 8 at least)."
        )
    return "\n".join(lines)
