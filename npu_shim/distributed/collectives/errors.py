"""Errors between ranks and their messages. Each message names the ranks, their processes and the collective."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Sequence

if TYPE_CHECKING:
    import numpy as np


class CollectiveError(RuntimeError):
    """A collective failed; the subclasses give the reason."""


class RankTaken(CollectiveError):
    """Another process already is this rank of this job."""


class PeerLost(CollectiveError):
    """A rank died, exited or failed while others needed it."""


class Stalled(CollectiveError):
    """A rank did not reach a collective within the timeout."""


class Mismatch(CollectiveError):
    """The ranks request different things: job sizes, operations, types or shapes differ."""


NO_ANSWER = "without an answer: its process is stopped, or runs C code that holds Python's lock"

_KINDS = (CollectiveError, RankTaken, PeerLost, Stalled, Mismatch)


def error_code(error: CollectiveError) -> int:
    """Return the class of an error as a number above 0, for memory that other ranks read."""
    return 1 + _KINDS.index(type(error))


def error_from_code(code: int, text: str) -> CollectiveError:
    """Return the error with this error_code() and text."""
    return _KINDS[code - 1](text)


def exit_reason_text() -> str:
    """Return how this process exits, for the ranks that still need it."""
    error = getattr(sys, "last_value", None)
    if error is None:
        return "has exited (its script finished)"
    return f"has exited with {type(error).__name__}: {error}"


def rank_name(rank: int, process: int, host: str = "") -> str:
    """Return a name such as 'rank 3 (process 4711)', with the host if one is given."""
    return f"rank {rank} (process {process}{' on ' + host if host else ''})"


def mismatch_text(key: str, first: tuple[str, str], other: tuple[str, str]) -> str:
    """Return the message for two ranks whose requests differ.

    Args:
        key: the key of the collective.
        first: name and request of one rank.
        other: name and request of another rank.
    """
    return f"{key}: {first[0]} requests {first[1]}, {other[0]} requests {other[1]}. Make the same call on every rank."


def stall_text(
    collective: str,
    waited_s: float,
    present: Sequence[str],
    missing: Sequence[tuple[str, str, Sequence[str]]],
    unresponsive: str,
) -> str:
    """Return the message for a collective that timed out.

    Args:
        collective: its key and request.
        waited_s: seconds.
        present: names of the ranks that reached it.
        missing: names of the ranks that did not, each with the line of its script, which may be empty, and the keys of
            the collectives that it waits for.
        unresponsive: name of the rank that schedules the group, for the case that every rank reached the collective.
    """
    lines = [f"{collective} stalled for {waited_s:g} s. Reached by {', '.join(present)}. Not reached by:"]
    for name, place, keys in missing:
        waiting = "waiting for " + ", ".join(keys) if keys else "in no collective"
        lines.append("  " + ", ".join(filter(None, [name, place, waiting])))
    if not missing:
        lines.append(f"  no rank, but {unresponsive}, which schedules the group, does not respond")
    elif all(keys for _, _, keys in missing):
        lines.append(
            "Deadlock: each rank waits in a collective that another rank has not reached. Call the collectives in the "
            "same order on every rank."
        )
    return "\n".join(lines)


def stopped_rank_text(rank_name: str, waited_s: float, place: str) -> str:
    """Return the message for a rank that stopped in the middle of a collective.

    Args:
        rank_name: of the rank.
        waited_s: seconds.
        place: the line of its script; may be empty.
    """
    return f"{rank_name} stopped in the middle of a collective for {waited_s:g} s" + (f", {place}." if place else ".")


def agreed_count_matrix(key: str, counts: np.ndarray) -> np.ndarray:
    """Check that every rank expects the counts that the others send.

    Args:
        key: the key of the collective.
        counts: [size, 2 * size]; the send counts of each rank, then its receive counts.
    Returns:
        [size, size]; row i has the number of elements that rank i sends to each rank.
    Raises:
        Mismatch: the counts differ; the text is the same on every rank.
    """
    size = len(counts)
    sent, expected = counts[:, :size], counts[:, size:].T
    wrong = (sent != expected).nonzero()
    if len(wrong[0]):
        source, target = int(wrong[0][0]), int(wrong[1][0])
        raise Mismatch(
            f"{key}: rank {source} of the group sends {sent[source, target]} elements to rank {target}, which expects "
            f"{expected[source, target]}. Make send_counts[{target}] of rank {source} equal to recv_counts[{source}] "
            f"of rank {target}."
        )
    return sent
