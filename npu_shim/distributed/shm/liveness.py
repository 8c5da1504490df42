"""Liveness of the ranks: which of them are alive, and the reason if one is not."""

from __future__ import annotations

from typing import Sequence

from npu_shim.distributed.collectives.errors import CollectiveError, error_code, error_from_code, rank_name
from npu_shim.distributed.shm import rank_lock, script_lines
from npu_shim.distributed.shm.job_directory import lock_path
from npu_shim.distributed.shm.segment import BROKEN, INCARNATION, LEFT, PID, RANK_STATE, Segment, fence


def mark_failed(group: Segment, rank: int, error: CollectiveError) -> None:
    """Show the other members that this rank of the group cannot continue, and why."""
    group.write_text(group.text_offset(rank), str(error))
    fence()
    group.words[group.first_word_of_page(rank) + RANK_STATE] = BROKEN + error_code(error)


class Peers:
    """The ranks of a group as one of them sees them.

    Args:
        directory: the job directory with the lock files.
        world: the segment of the world group, in which a rank writes that it left.
        members: world ranks of the group, in the order of the group.
        own_rank: the world rank of this process.
        numbers: the number of each world rank in names; its own when None. Ranks of a host among several have other
            numbers in the job than in the memory of the host.
        host: name of this host in names; empty if the job has one host.
    """

    def __init__(
        self,
        directory: str,
        world: Segment,
        members: list[int],
        own_rank: int,
        numbers: Sequence[int] | None = None,
        host: str = "",
    ) -> None:
        self._directory, self._world, self._members, self._own_rank = directory, world, members, own_rank
        self._numbers, self._host = numbers, host

    def name(self, member: int) -> str:
        """Return a name such as 'rank 3 (process 4711)', with the number of the rank in the job."""
        rank = self._members[member]
        number = rank if self._numbers is None else self._numbers[rank]
        return rank_name(number, self._world.words[self._world.first_word_of_page(rank) + PID], self._host)

    def places(self, members: Sequence[int]) -> list[str]:
        """Return where members are in their scripts: ``at train.py:42 in load``, or an empty text."""
        return script_lines.ask_script_lines(self._world, [self._members[member] for member in members])

    def find_failure(self, group: Segment) -> CollectiveError | None:
        """Return the error that made another member leave a collective, with its own text."""
        for member, rank in enumerate(self._members):
            state = group.words[group.first_word_of_page(member) + RANK_STATE]
            if rank != self._own_rank and state > BROKEN:
                fence()
                return error_from_code(state - BROKEN, group.read_text(group.text_offset(member)))
        return None

    def find_lost(self) -> str | None:
        """Return which member died or exited, with the reason; None while all are alive."""
        for member, rank in enumerate(self._members):
            if rank != self._own_rank:
                text = self._reason_of_loss(member, rank)
                if text:
                    return text
        return None

    def _reason_of_loss(self, member: int, rank: int) -> str | None:
        page = self._world.first_word_of_page(rank)
        holder = rank_lock.find_other_holder(lock_path(self._directory, rank))
        if self._world.words[page + RANK_STATE] == LEFT:
            fence()
            return f"{self.name(member)} {self._world.read_text(self._world.text_offset(rank))}"
        if holder is None or holder.incarnation != self._world.words[page + INCARNATION]:
            return f"{self.name(member)} died"
        return None
