"""Ranks of this process, as the launch script's environment says; collectives need one process so far."""
from __future__ import annotations

import functools
from typing import Any, Callable, List, Sequence

from npu_shim import _device, _env

WORLD = "hccl_world_group"


def require_single_process(name: str) -> None:
    """Lets a collective through on one process only: there its answer is known.

    Raises:
        RuntimeError: the job has more ranks; a single-rank answer would be wrong.
    """
    environment = _env.read()
    if environment.is_distributed:
        raise RuntimeError(
            f"{name} needs communication between {environment.rank_size} ranks (RANK_SIZE or CM_WORKER_SIZE), and "
            "training on several ranks is not part of this release of npu_shim. Run one process: unset RANK_SIZE, "
            "RANK_ID and CM_WORKER_SIZE, or export RANK_SIZE=1."
        )


def hccl(module: str) -> Callable[[Callable], Callable]:
    """Decorator: on an NPU the function of the same name in HCCL's package answers."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def answer(*args: Any, **kwargs: Any) -> Any:
            if _device.device().is_npu:
                return getattr(_device.vendor(module), function.__name__)(*args, **kwargs)
            return function(*args, **kwargs)

        return answer

    return decorate


def get_rank_size(group: str = WORLD) -> int:
    """Number of ranks in a group: RANK_SIZE (or CM_WORKER_SIZE), 1 when unset; of a group of one's own, HCCL's answer."""
    if group == WORLD:
        return _env.read().rank_size
    return _size_of(group)


def get_rank_id(group: str = WORLD) -> int:
    """This process's number in a group: RANK_ID, 0 when there is one process; of a group of one's own, HCCL's answer."""
    rank = _env.read().rank_id
    return _rank_in(group) if group != WORLD or rank is None else rank


@hccl("hccl.manage.api")
def get_local_rank_size(group: str = WORLD) -> int:
    """Number of the group's ranks on this server: 1 on one process."""
    require_single_process("get_local_rank_size")
    return 1


@hccl("hccl.manage.api")
def get_local_rank_id(group: str = WORLD) -> int:
    """This process's number among the group's ranks on this server: 0 on one process."""
    require_single_process("get_local_rank_id")
    return 0


@hccl("hccl.manage.api")
def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The world's number of a rank of a group."""
    require_single_process("get_world_rank_from_group_rank")
    return _rank_zero(group_rank_id, "group_rank_id")


@hccl("hccl.manage.api")
def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The group's number of a rank of the world."""
    require_single_process("get_group_rank_from_world_rank")
    return _rank_zero(world_rank_id, "world_rank_id")


@hccl("hccl.manage.api")
def create_group(group: str, rank_num: int, rank_ids: Sequence[int]) -> None:
    """Makes a group of ranks; on one process the only group is [0], and there is nothing to set up.

    Args:
        group: its name, at most 128 bytes, not 'hccl_world_group'.
        rank_num: how many ranks it has.
        rank_ids: their world numbers, each once.
    Raises:
        TypeError, ValueError: on other arguments.
        RuntimeError: the job has more than one rank.
    """
    _check_group(group)
    if not isinstance(rank_ids, (list, tuple)) or not all(_is_int(r) for r in rank_ids):
        raise TypeError(f"rank_ids={rank_ids!r} is not allowed: it must be a list of int.")
    if not _is_int(rank_num) or rank_num != len(rank_ids) or len(set(rank_ids)) != len(rank_ids):
        raise ValueError(
            f"rank_num={rank_num!r} and rank_ids={list(rank_ids)} do not fit: rank_ids must name rank_num ranks, each once."
        )
    require_single_process("create_group")
    for rank in rank_ids:
        _rank_zero(rank, "rank_ids")


@hccl("hccl.manage.api")
def destroy_group(group: str) -> None:
    """Drops a group; on one process there is nothing to drop.

    Raises:
        TypeError, ValueError: the name is not allowed.
        RuntimeError: the job has more than one rank.
    """
    _check_group(group)
    require_single_process("destroy_group")


@hccl("hccl.split.api")
def set_split_strategy_by_idx(idxList: Sequence[int], group: str = WORLD) -> None:
    """Says after which gradients a new bucket begins. Changes speed on several cards, never a number.

    Args:
        idxList: growing indices of gradients, at most 8; the last is the last gradient.
        group: the group it is for.
    Raises:
        TypeError, ValueError: on other arguments.
    """
    if not isinstance(idxList, (list, tuple)) or not all(_is_int(i) and i >= 0 for i in idxList):
        raise TypeError(f"idxList={idxList!r} is not allowed: it must be a list of int, none negative.")
    if not 1 <= len(idxList) <= 8 or any(b <= a for a, b in zip(idxList, idxList[1:])):
        raise ValueError(f"idxList={list(idxList)} is not allowed: it must have 1 to 8 growing indices.")


@hccl("hccl.split.api")
def set_split_strategy_by_size(dataSizeList: Sequence[float], group: str = WORLD) -> None:
    """Says which shares of the gradient bytes make a bucket. Changes speed on several cards, never a number.

    Args:
        dataSizeList: at most 8 positive percentages which sum to 100.
        group: the group it is for.
    Raises:
        TypeError, ValueError: on other arguments.
    """
    if not isinstance(dataSizeList, (list, tuple)) or not all(isinstance(s, (int, float)) for s in dataSizeList):
        raise TypeError(f"dataSizeList={dataSizeList!r} is not allowed: it must be a list of numbers.")
    if not 1 <= len(dataSizeList) <= 8 or min(dataSizeList) <= 0 or abs(sum(dataSizeList) - 100) > 1e-6:
        raise ValueError(
            f"dataSizeList={list(dataSizeList)} is not allowed: it must have 1 to 8 positive percentages that sum to 100."
        )


def check_root(root_rank: Any, name: str) -> None:
    """On one process the only root is rank 0.

    Raises:
        ValueError: another root.
    """
    if root_rank not in (0, None):
        raise ValueError(f"{name}: root_rank={root_rank!r} is not allowed: this job has one rank, so it must be 0.")


def _size_of(group: str) -> int:
    if _device.device().is_npu:
        return _device.vendor("hccl.manage.api").get_rank_size(group)
    require_single_process(f"get_rank_size(group={group!r})")
    return 1


def _rank_in(group: str) -> int:
    if _device.device().is_npu:
        return _device.vendor("hccl.manage.api").get_rank_id(group)
    require_single_process(f"get_rank_id(group={group!r})")
    return 0


def _rank_zero(rank: int, name: str) -> int:
    if rank != 0:
        raise ValueError(f"{name}={rank!r} is not allowed: this job has one rank, so it must be 0.")
    return 0


def _check_group(group: Any) -> None:
    if not isinstance(group, str):
        raise TypeError(f"group={group!r} is not allowed: it must be a str.")
    if not group or len(group.encode("utf-8")) > 128 or group == WORLD:
        raise ValueError(f"group={group!r} is not allowed: it must be a name of 1 to 128 bytes other than {WORLD}.")


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


__all__: List[str] = [
    "create_group", "destroy_group", "get_group_rank_from_world_rank", "get_local_rank_id", "get_local_rank_size",
    "get_rank_id", "get_rank_size", "get_world_rank_from_group_rank", "set_split_strategy_by_idx",
    "set_split_strategy_by_size",
]
