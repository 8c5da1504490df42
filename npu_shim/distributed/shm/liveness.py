"""Who of the ranks still lives: the others need to know while they wait, and why one does not."""

from __future__ import annotations

from npu_shim.distributed.collectives.errors import CollectiveError, code_of, error_of
from npu_shim.distributed.shm import rank_lock as locks
from npu_shim.distributed.shm.job_directory import lock_path
from npu_shim.distributed.shm.segment import BROKEN, LEFT, LIFE, PID, RANK_STATE, Segment, fence


def break_group(group: Segment, member: int, error: CollectiveError) -> None:
    """Tells the other members that this one cannot go on, and why."""
    group.write_text(group.rank_text(member), str(error))
    fence()
    group.words[group.page(member) + RANK_STATE] = BROKEN + code_of(error)


class Peers:
    """The ranks of a group as one of them sees them.

    Args:
        folder: where the world's lock files are.
        world: the world's segment, in which a rank writes that it left.
        members: world ranks of the group, in the group's order.
        me: this process's world rank.
    """

    def __init__(self, folder: str, world: Segment, members: list[int], me: int) -> None:
        self._folder, self._world, self._members, self._me = folder, world, members, me

    def name(self, member: int) -> str:
        """'rank 3 (process 4711)'; ranks are those of the world."""
        rank = self._members[member]
        return f"rank {rank} (process {self._world.words[self._world.page(rank) + PID]})"

    def broken(self, group: Segment) -> CollectiveError | None:
        """The error with which another member left a collective, in its own words: it knows the reason."""
        for member, rank in enumerate(self._members):
            state = group.words[group.page(member) + RANK_STATE]
            if rank != self._me and state > BROKEN:
                fence()
                return error_of(state - BROKEN, group.read_text(group.rank_text(member)))
        return None

    def lost(self) -> str | None:
        """Says which member died or ended; None while all live."""
        for member, rank in enumerate(self._members):
            if rank != self._me:
                text = self._lost(member, rank)
                if text:
                    return text
        return None

    def _lost(self, member: int, rank: int) -> str | None:
        page = self._world.page(rank)
        alive = locks.holder(lock_path(self._folder, rank))
        if self._world.words[page + RANK_STATE] == LEFT:
            fence()
            return f"{self.name(member)} {self._world.read_text(self._world.rank_text(rank))}"
        if alive is None or alive.life != self._world.words[page + LIFE]:
            return f"{self.name(member)} died"
        return None
