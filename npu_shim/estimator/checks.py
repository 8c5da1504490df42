"""The argument checks of the vendor's util module."""

from __future__ import annotations

import os
from typing import Sequence

from npu_shim.distributed.world import world_size
from npu_shim.options.check import checked_value
from npu_shim.options.table import KEYS


def check_not_none(value: object, name: str) -> None:
    """Raise ValueError if value is None."""
    if value is None:
        raise ValueError(f"{name} must not be None.")


def check_positive_integer(value: object, name: str) -> None:
    """Raise TypeError if value is not an int, ValueError if it is less than 1."""
    if not isinstance(value, int):
        raise TypeError(f"{name}={value!r} is not allowed: it must be an int of at least 1.")
    if value < 1:
        raise ValueError(f"{name}={value!r} is not allowed: it must be an int of at least 1.")


def check_nonnegative_integer(value: object, name: str) -> None:
    """Raise TypeError if value is not an int, ValueError if it is negative."""
    if not isinstance(value, int):
        raise TypeError(f"{name}={value!r} is not allowed: it must be an int of at least 0.")
    if value < 0:
        raise ValueError(f"{name}={value!r} is not allowed: it must be an int of at least 0.")


def check_bool_type(value: object, name: str) -> None:
    """Raise TypeError if value is not a bool."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}={value!r} is not allowed: it must be True or False.")


def convert_bool_to_int(value: object) -> int:
    """Return 1 for True, 0 for False, -1 for anything else."""
    return int(value) if isinstance(value, bool) else -1


def format_string(value: object, name: str) -> str:
    """Return the string, or an empty string for None. Raise TypeError for another type."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r} is not allowed: it must be a str.")
    return value


def check_profiling_options(profiling_options: Sequence[str] = ()) -> str:
    """Return the options joined by ':'. Raise ValueError for an unknown one."""
    allowed = ("training_trace", "task_time", "op_trace")
    for one in profiling_options:
        if one not in allowed:
            raise ValueError(f"profiling_options: {one!r} is not allowed: it must be one of {', '.join(allowed)}.")
    return ":".join(profiling_options)


def check_path(path: str) -> str:
    """Return the real path of a directory. Raise ValueError if it is not readable and writable."""
    real = os.path.realpath(path)
    if not os.path.isdir(real) or not os.access(real, os.R_OK | os.W_OK):
        raise ValueError(f"path={path!r} is not allowed: it must be a readable and writable directory.")
    return real


def check_aoe_mode(aoe_mode: str) -> None:
    """Raise ValueError for an aoe_mode other than '1', '2' and '4'."""
    checked_value(KEYS["aoe_mode"], aoe_mode)


def get_ranksize() -> str:
    """Return the number of ranks as a string. Raise ValueError if the rank variables contradict each other."""
    return str(world_size())
