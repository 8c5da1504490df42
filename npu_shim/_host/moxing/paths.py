"""Local paths for paths of OBS, the object storage of ModelArts."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from npu_shim._host import host_env

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Function, Result, Value


_OBS = re.compile(r"(?:obs|s3)://(.*)", re.DOTALL)


def is_obs_path(path: object) -> bool:
    """Return True for a path of OBS."""
    return isinstance(path, str) and _OBS.match(path) is not None


def to_local_path(path: str | os.PathLike[str]) -> str:
    """Return the local path for a path of OBS, and any other path as it is.

    Args:
        path: ``obs://BUCKET/KEY``, ``s3://BUCKET/KEY``, or a local path.
    Returns:
        A path below the folder NPU_SHIM_OBS, or the path.
    Raises:
        ValueError: NPU_SHIM_OBS is not set, or the path leads out of it.
    """
    path = os.fspath(path)
    match = _OBS.match(path)
    if match is None:
        return path
    root = host_env.obs_folder()
    if root is None:
        raise ValueError(
            f"{path!r} is a path of OBS, which cannot be read here. Copy the bucket to a folder, and export "
            "NPU_SHIM_OBS=FOLDER: obs://BUCKET/KEY is FOLDER/BUCKET/KEY then."
        )
    key = match.group(1)
    if ".." in key.split("/"):
        raise ValueError(f"{path!r} is not a path of OBS: it has the part '..'. Write the path without it.")
    return os.path.join(root, *key.split("/"))


def with_local_paths(function: Function) -> Function:
    """Return a function that calls another one with local paths in place of paths of OBS."""

    def called(*args: Value, **kwargs: Value) -> Result:
        return function(
            *(to_local_path(value) if is_obs_path(value) else value for value in args),
            **{name: to_local_path(value) if is_obs_path(value) else value for name, value in kwargs.items()},
        )

    called.__name__ = getattr(function, "__name__", "called")
    return called
