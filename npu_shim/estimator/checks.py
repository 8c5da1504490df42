"""Small checks the vendor's util module offers."""

from __future__ import annotations

import os
from typing import Any, Sequence

from npu_shim.distributed.world import world_size
from npu_shim.options.check import check_value
from npu_shim.options.table import KEYS


def check_not_none(value: Any, name: str) -> None:
    """Raises ValueError when value is None."""
    if value is None:
        raise ValueError(f"{name} must not be None.")


def check_positive_integer(value: Any, name: str) -> None:
    """Raises TypeError when value is no int, ValueError when it is less than 1."""
    if not isinstance(value, int):
        raise TypeError(f"{name}={value!r} is not allowed: it must be an int of at least 1.")
    if value < 1:
        raise ValueError(f"{name}={value!r} is not allowed: it must be an int of at least 1.")


def check_nonnegative_integer(value: Any, name: str) -> None:
    """Raises TypeError when value is no int, ValueError when it is negative."""
    if not isinstance(value, int):
        raise TypeError(f"{name}={value!r} is not allowed: it must be an int of at least 0.")
    if value < 0:
        raise ValueError(f"{name}={value!r} is not allowed: it must be an int of at least 0.")


def check_bool_type(value: Any, name: str) -> None:
    """Raises TypeError when value is no bool."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}={value!r} is not allowed: it must be True or False.")


def convert_bool_to_int(value: Any) -> int:
    """1 for True, 0 for False, -1 for anything else."""
    return int(value) if isinstance(value, bool) else -1


def format_string(value: Any, name: str) -> str:
    """An empty text for None; raises TypeError for what is no text."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r} is not allowed: it must be a str.")
    return value


def check_profiling_options(profiling_options: Sequence[str] = ()) -> str:
    """The options joined by ':'; raises ValueError for an unknown one."""
    allowed = ("training_trace", "task_time", "op_trace")
    for one in profiling_options:
        if one not in allowed:
            raise ValueError(f"profiling_options: {one!r} is not allowed: it must be one of {', '.join(allowed)}.")
    return ":".join(profiling_options)


def check_path(path: str) -> str:
    """The real path of a directory that can be read and written; raises ValueError for another."""
    real = os.path.realpath(path)
    if not os.path.isdir(real) or not os.access(real, os.R_OK | os.W_OK):
        raise ValueError(f"path={path!r} is not allowed: it must be a directory that can be read and written.")
    return real


def check_aoe_mode(aoe_mode: str) -> None:
    """Raises ValueError for an aoe_mode other than '1', '2' and '4'."""
    check_value(KEYS["aoe_mode"], aoe_mode)


def get_ranksize() -> str:
    """Number of ranks as text, '1' where nothing says it; raises ValueError where what is set contradicts itself."""
    return str(world_size())
