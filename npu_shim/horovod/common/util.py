"""Helper functions of Horovod that scripts import."""

from __future__ import annotations

import re
from typing import Sequence, TypeVar

_Element = TypeVar("_Element")


def check_extension(ext_name: str, ext_env_var: str, pkg_path: str, *args: str) -> None:
    """Do nothing: npu_shim has no compiled extension that could be missing."""


def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Return False: collectives run on NPUs or CPUs."""
    return False


def split_list(values: Sequence[_Element], parts: int) -> list[Sequence[_Element]]:
    """Return the values in that many consecutive parts, whose lengths differ by at most one."""
    length, longer = divmod(len(values), parts)
    ends = [(part + 1) * length + min(part + 1, longer) for part in range(parts)]
    return [values[begin:end] for begin, end in zip([0] + ends, ends)]


def num_rank_is_power_2(num_rank: int) -> bool:
    """Return True for 1, 2, 4, 8 ..."""
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def is_iterable(value: object) -> bool:
    """Return True if a value can be iterated over."""
    return hasattr(value, "__iter__")


def is_version_greater_equal_than(ver: str, target: str) -> bool:
    """Return True if a version such as '2.6.0' is at least the target.

    Raises:
        ValueError: a version has not three or four parts.
    """
    numbers = []
    for text in (ver, target):
        parts = text.split(".")
        if len(parts) not in (3, 4):
            raise ValueError(f"the version {text!r} is not allowed. Write it as major.minor.patch.")
        numbers.append([int(re.match("[0-9]*", part).group() or 0) for part in parts[:3]])  # type: ignore[union-attr]
    return numbers[0] >= numbers[1]
