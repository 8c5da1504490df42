"""The interface by which the schedulers of several hosts agree on an order of the collectives of a group."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

from npu_shim.distributed.collectives.errors import CollectiveError

if TYPE_CHECKING:
    from npu_shim.distributed.shm.announcements import PendingCollective


class HostOrder(abc.ABC):
    """The other hosts of a group, as the scheduler of one host sees them. Its first rank alone has one."""

    @abc.abstractmethod
    def offer(self, pending: PendingCollective, mismatched_request: tuple[str, str] | None) -> None:
        """Show the other hosts that every rank of this host is ready for a collective.

        Args:
            pending: the collective.
            mismatched_request: name and request of the first rank of this host whose request differs, or None.
        """

    @abc.abstractmethod
    def next_token_and_mismatch(self) -> tuple[int, str] | None:
        """Return the token of the next collective, the same on every host, and the message if the requests differ.

        Returns:
            None while the hosts have not agreed.
        """

    @abc.abstractmethod
    def find_failure(self) -> CollectiveError | None:
        """Return the error with which another host left a collective of the group."""

    @abc.abstractmethod
    def find_lost(self) -> str | None:
        """Return which rank of another host exited, with the reason; None while all are there."""

    @abc.abstractmethod
    def stall_message(self, pending: PendingCollective, waited_s: float) -> str:
        """Return the message for a collective that timed out, with the ranks of all hosts."""

    @abc.abstractmethod
    def fail(self, error: CollectiveError) -> None:
        """Show the other hosts why this host cannot continue."""
