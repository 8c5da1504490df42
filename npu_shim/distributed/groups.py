"""Groups of ranks by name: the registry of the groups that a script has created.

As in HCCL, ranks in a group are numbered by their world rank, ascending, whatever
the order in which they are named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from npu_shim.distributed.world import WORLD, World, world

_MAX_NAME_BYTES = 127  # 128 with the terminating character
_groups: dict[str, tuple[int, ...]] = {}


@dataclass(frozen=True)
class Group:
    """Ranks of the world, ascending, with a name."""

    name: str
    ranks: tuple[int, ...]

    @property
    def size(self) -> int:
        """Return the number of ranks."""
        return len(self.ranks)

    def rank_of(self, world_rank: int) -> int:
        """Return the rank in this group of a world rank.

        Raises:
            ValueError: the rank is not in the group.
        """
        if world_rank not in self.ranks:
            raise ValueError(
                f"rank {world_rank} is not in group {self.name!r}, which has the ranks {ranks_text(self.ranks)}. "
                "Use the "
                "group in its own ranks only."
            )
        return self.ranks.index(world_rank)

    def world_rank(self, group_rank: int) -> int:
        """Return the world rank of a rank of this group.

        Raises:
            ValueError: the group has no such rank.
        """
        if not 0 <= group_rank < self.size:
            raise ValueError(
                f"group_rank_id={group_rank!r} is not allowed: group {self.name!r} has the ranks 0 to {self.size - 1}."
            )
        return self.ranks[group_rank]


def find_group(name: str = WORLD, of: World | None = None) -> Group:
    """Return the group with a name.

    Args:
        name: the name passed to create_group, or 'hccl_world_group'.
        of: the world; read from the environment when None.
    Returns:
        A Group.
    Raises:
        TypeError: the name is not a str.
        ValueError: the group does not exist.
    """
    if not isinstance(name, str):
        raise TypeError(f"group={name!r} is not allowed. Pass a str.")
    if name == WORLD:
        return Group(WORLD, tuple(range((of or world()).size)))
    if name not in _groups:
        known = ", ".join(repr(n) for n in (WORLD, *_groups))
        raise ValueError(
            f"group={name!r} does not exist; the groups are {known}. Create it with create_group in each of its ranks."
        )
    return Group(name, _groups[name])


def create_group(name: str, rank_num: int, rank_ids: Sequence[int], of: World | None = None) -> Group:
    """Create a group that contains this process.

    Args:
        name: a new name of at most 127 bytes, not 'hccl_world_group'.
        rank_num: number of ranks.
        rank_ids: their world ranks, each once.
        of: the world; read from the environment when None.
    Returns:
        The Group.
    Raises:
        TypeError, ValueError: an argument is not allowed, or this process is not in rank_ids.
    """
    check_new_group_name(name)
    if not isinstance(rank_ids, (list, tuple)) or not all(is_int(r) for r in rank_ids):
        raise TypeError(f"rank_ids={rank_ids!r} is not allowed. Pass a list of int.")
    if not is_int(rank_num) or rank_num != len(rank_ids) or len(set(rank_ids)) != len(rank_ids) or not rank_ids:
        raise ValueError(
            f"rank_num={rank_num!r} and rank_ids={list(rank_ids)} do not match. Name rank_num ranks in rank_ids, each "
            "once."
        )
    here = of or world()
    outside = [rank for rank in rank_ids if not 0 <= rank < here.size]
    if outside:
        raise ValueError(
            f"rank_ids={list(rank_ids)} is not allowed: this job has the ranks 0 to {here.size - 1} ({here.source}), "
            f"but not {ranks_text(outside)}."
        )
    if here.rank not in rank_ids:
        raise ValueError(
            f"group={name!r} with rank_ids={list(rank_ids)} does not contain rank {here.rank}. Call create_group in "
            "the ranks of the group only."
        )
    if name in _groups:
        raise ValueError(
            f"group={name!r} already exists with the ranks {ranks_text(_groups[name])}. Use another name, or call "
            "destroy_group first."
        )
    _groups[name] = tuple(sorted(rank_ids))
    return find_group(name, here)


def destroy_group(name: str) -> None:
    """Remove a group.

    Raises:
        TypeError, ValueError: the name is not allowed, or the group does not exist.
    """
    check_new_group_name(name)
    find_group(name)
    del _groups[name]


def check_new_group_name(name: object) -> None:
    """Check the name of a new group.

    Raises:
        TypeError, ValueError: the name is not allowed.
    """
    if not isinstance(name, str):
        raise TypeError(f"group={name!r} is not allowed. Pass a str.")
    if not name or len(name.encode("utf-8")) > _MAX_NAME_BYTES or name == WORLD:
        raise ValueError(
            f"group={name!r} is not allowed. Use a name of 1 to {_MAX_NAME_BYTES} bytes other than {WORLD}."
        )


def is_int(value: object) -> bool:
    """Return True for an int that is not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def ranks_text(ranks: Sequence[int]) -> str:
    """Return ranks separated by commas."""
    return ", ".join(str(rank) for rank in ranks)
