"""Groups of ranks by name: the one place that remembers which a script has made.

Ranks in a group are numbered by their world rank, ascending, whatever the order
they are named in; that is what HCCL does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from npu_shim.distributed.world import WORLD, World, world

_MOST_BYTES = 127  # 128 with the end character
_made: dict[str, tuple[int, ...]] = {}


@dataclass(frozen=True)
class Group:
    """Some ranks of the world, ascending, by a name."""

    name: str
    ranks: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.ranks)

    def rank_of(self, world_rank: int) -> int:
        """The number in this group of a rank of the world.

        Raises:
            ValueError: that rank is not in the group.
        """
        if world_rank not in self.ranks:
            raise ValueError(
                f"rank {world_rank} is not in the group {self.name!r}, which has the ranks {listed(self.ranks)}. Use "
                "the group in its ranks only."
            )
        return self.ranks.index(world_rank)

    def world_rank(self, group_rank: int) -> int:
        """The number in the world of a rank of this group.

        Raises:
            ValueError: the group has no such rank.
        """
        if not 0 <= group_rank < self.size:
            raise ValueError(
                f"group_rank_id={group_rank!r} is not allowed: the group {self.name!r} has ranks 0 to {self.size - 1}."
            )
        return self.ranks[group_rank]


def group(name: str = WORLD, of: World | None = None) -> Group:
    """Looks a group up.

    Args:
        name: that create_group was given, or 'hccl_world_group'.
        of: the world; read from the environment when None.
    Returns:
        A Group.
    Raises:
        TypeError, ValueError: there is none of that name.
    """
    if not isinstance(name, str):
        raise TypeError(f"group={name!r} is not allowed: it must be a str.")
    if name == WORLD:
        return Group(WORLD, tuple(range((of or world()).size)))
    if name not in _made:
        known = ", ".join(repr(n) for n in (WORLD, *_made))
        raise ValueError(
            f"group={name!r} does not exist; there is {known}. Make it with create_group in each of its ranks."
        )
    return Group(name, _made[name])


def create(name: str, rank_num: int, rank_ids: Sequence[int], of: World | None = None) -> Group:
    """Makes a group that this process is in.

    Args:
        name: at most 127 bytes, not 'hccl_world_group', and not one that exists.
        rank_num: how many ranks it has.
        rank_ids: their world ranks, each once.
        of: the world; read from the environment when None.
    Returns:
        The Group.
    Raises:
        TypeError, ValueError: on other arguments, or where this process is not among rank_ids.
    """
    check_name(name)
    if not isinstance(rank_ids, (list, tuple)) or not all(is_int(r) for r in rank_ids):
        raise TypeError(f"rank_ids={rank_ids!r} is not allowed: it must be a list of int.")
    if not is_int(rank_num) or rank_num != len(rank_ids) or len(set(rank_ids)) != len(rank_ids) or not rank_ids:
        raise ValueError(
            f"rank_num={rank_num!r} and rank_ids={list(rank_ids)} do not fit: rank_ids must name rank_num ranks, each "
            "once."
        )
    here = of or world()
    outside = [rank for rank in rank_ids if not 0 <= rank < here.size]
    if outside:
        raise ValueError(
            f"rank_ids={list(rank_ids)} is not allowed: this job has ranks 0 to {here.size - 1} "
            f"({here.source}), and no {listed(outside)}."
        )
    if here.rank not in rank_ids:
        raise ValueError(
            f"group={name!r} with rank_ids={list(rank_ids)} cannot be made by rank {here.rank}, which is "
            "not in it: call create_group in its ranks only."
        )
    if name in _made:
        raise ValueError(
            f"group={name!r} exists already, with the ranks {listed(_made[name])}: take another name, or "
            "call destroy_group first."
        )
    _made[name] = tuple(sorted(rank_ids))
    return group(name, here)


def destroy(name: str) -> None:
    """Drops a group.

    Raises:
        TypeError, ValueError: the name is not allowed, or there is no such group.
    """
    check_name(name)
    group(name)
    del _made[name]


def check_name(name: Any) -> None:
    """Lets a name pass that a group of one's own may have.

    Raises:
        TypeError, ValueError: it may not.
    """
    if not isinstance(name, str):
        raise TypeError(f"group={name!r} is not allowed: it must be a str.")
    if not name or len(name.encode("utf-8")) > _MOST_BYTES or name == WORLD:
        raise ValueError(
            f"group={name!r} is not allowed: it must be a name of 1 to {_MOST_BYTES} bytes other than {WORLD}."
        )


def is_int(value: Any) -> bool:
    """True for an int that is no bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def listed(ranks: Sequence[int]) -> str:
    """Ranks as people write them."""
    return ", ".join(str(rank) for rank in ranks)
