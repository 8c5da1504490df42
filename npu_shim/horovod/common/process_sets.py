"""Process sets: ranks that run collectives among themselves, each a group of the collectives."""

from __future__ import annotations

from typing import Iterable

from npu_shim.distributed import groups
from npu_shim.distributed.ranks import create_group, destroy_group
from npu_shim.distributed.world import WORLD, world


class ProcessSet:
    """Ranks that run collectives together. Pass it to ``hvd.init`` or ``hvd.add_process_set`` before it is used.

    Args:
        ranks_or_comm: world ranks. An MPI communicator is not supported.

    Attributes:
        process_set_id: the number of the set; None before it is added and after it is removed.
        ranks: the ranks, ascending.
        mpi_comm: None.
    """

    process_set_id: int | None = None
    mpi_comm = None

    def __init__(self, ranks_or_comm: Iterable[int]) -> None:
        given = list(ranks_or_comm) if isinstance(ranks_or_comm, Iterable) else [ranks_or_comm]
        if not all(isinstance(rank, int) for rank in given):
            raise ValueError(
                f"ProcessSet({ranks_or_comm!r}) is not allowed. Pass a list of world ranks, such as [0, 1]."
            )
        self.ranks: list[int] = sorted(given)

    def size(self) -> int | None:
        """Return the number of ranks; None if the set was not added."""
        return None if self.process_set_id is None else len(self.ranks)

    def rank(self) -> int | None:
        """Return the number of this process in the set; None if the set was not added.

        Raises:
            ValueError: this process is not in the set.
        """
        if self.process_set_id is None:
            return None
        here = world().rank
        if here not in self.ranks:
            raise ValueError(f"rank {here} is not in {self}. Ask included() first.")
        return self.ranks.index(here)

    def included(self) -> bool | None:
        """Return True if this process is in the set; None if Horovod is not initialized."""
        return world().rank in self.ranks if self.ranks else None

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, mpi_comm={self.mpi_comm})"


global_process_set = ProcessSet([])
global_process_set.process_set_id = 0
_sets: dict[int, ProcessSet] = {0: global_process_set}


def start_process_sets(process_sets: Iterable[ProcessSet]) -> None:
    """Give the global set its ranks, forget the sets of an earlier start, and add some.

    Raises:
        ValueError: a set has ranks that the job has not, or two sets have the same ranks.
    """
    stop_process_sets()
    global_process_set.ranks = list(range(world().size))
    for process_set in process_sets:
        add_process_set(process_set)


def stop_process_sets() -> None:
    """Remove all sets but the global one, which loses its ranks."""
    for process_set in list(_sets.values()):
        remove_process_set(process_set)
    global_process_set.ranks = []


def add_process_set(process_set: ProcessSet | Iterable[int]) -> ProcessSet:
    """Add a process set. Every rank of the job calls this with the same ranks, in the same order.

    Args:
        process_set: a ProcessSet, or world ranks.
    Returns:
        The ProcessSet.
    Raises:
        ValueError: Horovod is not initialized, the job has no such rank, or there is a set with these ranks.
    """
    added = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    if not global_process_set.ranks:
        raise ValueError("Horovod has not been initialized; use hvd.init().")
    if not added.ranks or not set(added.ranks) <= set(global_process_set.ranks):
        raise ValueError(
            f"{added} is not allowed: this job has the ranks {groups.ranks_text(global_process_set.ranks)}."
        )
    twin = next((other for other in _sets.values() if other.ranks == added.ranks), None)
    if twin is not None:
        raise ValueError(f"{added} is not allowed: {twin} has the same ranks. Use that one.")
    number = next(n for n in range(len(_sets) + 1) if n not in _sets)
    if world().rank in added.ranks:
        create_group(_group_name(number), len(added.ranks), added.ranks)
    added.process_set_id = number
    _sets[number] = added
    return added


def remove_process_set(process_set: ProcessSet) -> bool:
    """Remove a process set; every rank of the job calls this. Return False for the global set and unknown ones."""
    number = process_set.process_set_id
    if not number or _sets.get(number) is not process_set:
        return False
    if world().rank in process_set.ranks:
        destroy_group(_group_name(number))
    del _sets[number]
    process_set.process_set_id = None
    return True


def process_set_by_id(process_set_id: int) -> ProcessSet:
    """Return the process set with a number.

    Raises:
        ValueError: there is none.
    """
    if process_set_id not in _sets:
        raise ValueError(f"process_set_id={process_set_id!r} is not allowed; the sets are {sorted(_sets)}.")
    return _sets[process_set_id]


def ids_and_ranks() -> dict[int, list[int]]:
    """Return the ranks of each process set by its number."""
    return {number: list(process_set.ranks) for number, process_set in _sets.items()}


def group_name_of(process_set: ProcessSet) -> str:
    """Return the name of the group whose collectives a process set runs.

    Raises:
        ValueError: the set was not added.
    """
    number = process_set.process_set_id
    if number is None or _sets.get(number) is not process_set:
        raise ValueError(
            f"{process_set} was not added. Pass it to hvd.init(process_sets=[...]) or hvd.add_process_set."
        )
    return WORLD if number == 0 else _group_name(number)


def _group_name(number: int) -> str:
    return f"horovod_process_set_{number}"


__all__ = ["ProcessSet", "add_process_set", "global_process_set", "remove_process_set"]
