"""What can go wrong between ranks. Every text names the ranks, their processes and the collective."""

from __future__ import annotations


class CollectiveError(RuntimeError):
    """A collective could not be carried out; the subclasses say why."""


class RankTaken(CollectiveError):
    """Another process is this rank of this job already."""


class PeerLost(CollectiveError):
    """A rank died, ended or failed while others needed it."""


class Stalled(CollectiveError):
    """Ranks did not come within the time that they were given."""


class Mismatch(CollectiveError):
    """The ranks do not ask for the same: sizes of the job, kinds, types or shapes differ."""


_KINDS = (CollectiveError, RankTaken, PeerLost, Stalled, Mismatch)


def code_of(error: CollectiveError) -> int:
    """The kind of an error as a number above 0, for memory that other ranks read."""
    return 1 + _KINDS.index(type(error))


def error_of(code: int, text: str) -> CollectiveError:
    """The error of code_of(), with its text."""
    return _KINDS[code - 1](text)
