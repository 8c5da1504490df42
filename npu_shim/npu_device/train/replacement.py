"""Replace functions of TensorFlow by the NPU's, for some versions of TensorFlow and in eager code or functions only.

A version is written as "2.6.2"; as "2.6.*", "2.*" or "*"; or as a range "2.6.2~2.6.999".
"""

from __future__ import annotations

import functools
import re
from typing import Callable, Sequence

from absl import logging

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Function, Result, Text
from npu_shim.npu_device.state import STATE

_HIGHEST = 999  # of each number of a version
_ranges: list[tuple[list[int], list[int]]] = []  # all that were parsed; verify_version() reads it


def parse_star_ver(ver: Text = str) -> bool:
    """Note the range of a version with "*", and return True."""
    numbers = [(0, _HIGHEST) if part == "*" else (int(part), int(part)) for part in ver.split(".")]
    numbers += [(0, _HIGHEST)] * (3 - len(numbers))
    _ranges.append(([low for low, _ in numbers], [high for _, high in numbers]))
    return True


def parse_range_version(ver: Text = str) -> bool:
    """Note the range of a version with "~"; return False if it is not two versions, the lower one first."""
    low, high = ([int(number) for number in end.split(".")] for end in ver.split("~"))
    if len(low) != 3 or len(high) != 3 or low > high:
        return False
    _ranges.append((low, high))
    return True


def parse_version(ver: Text = str) -> bool:
    """Note a version of three numbers, and return True."""
    numbers = [int(number) for number in ver.split(".")]
    _ranges.append((numbers, numbers))
    return True


def check_version_format(version: Text = str) -> bool:
    """Return True if a version is written as this module's docstring says."""
    number = r"\d+(\.\d+)*"
    return bool(re.match(rf"^({number}|({number}\.)?\*|{number}~{number})$", version))


def parse_version_range(version: Text = str) -> bool:
    """Note the versions that a text means; return False if it means none."""
    if "*" in version:
        return parse_star_ver(version)
    if "~" in version:
        return parse_range_version(version)
    return version.count(".") == 2 and parse_version(version)


def verify_version() -> bool:
    """Return True if this TensorFlow is in a range that was noted."""
    own = [int(number) for number in re.findall(r"\d+", tf.__version__)[:3]]
    return any(low <= own <= high for low, high in _ranges)


def judge_version_support(version_list: Text = list) -> bool:
    """Return True if this TensorFlow is one of the versions; a version in another form is logged as an error."""
    for version in version_list:
        if not check_version_format(version) or not parse_version_range(version):
            logging.error("%r is not a version. Write 2.6.2, 2.6.* or 2.6.2~2.6.9.", version)
            return False
    return verify_version()


def api_func_convert(wrapfunc: Function, **kwargs: Sequence[str]) -> Callable[[Function], Function]:
    """Return a decorator that replaces a function of TensorFlow once npu.open().as_default() was called.

    Args:
        wrapfunc: the function to call instead.
        version: a list of versions; with another TensorFlow nothing is replaced.
        mode: a list with "eager", "graph" or both: where it is replaced.
    Raises:
        TypeError: wrapfunc is not a function.
    """
    if not callable(wrapfunc):
        raise TypeError(f"wrapfunc={wrapfunc!r} is not allowed: it must be a function.")

    def convert(original: Function) -> Function:
        if not judge_version_support(kwargs.get("version", ())):
            return original
        modes = kwargs.get("mode", ())
        wrapfunc.__OriginCall__ = original  # type: ignore[attr-defined]

        @functools.wraps(original)
        def converted(*args: object, **arguments: object) -> Result:
            mode = "eager" if tf.executing_eagerly() else "graph"
            chosen = wrapfunc if mode in modes and STATE.default is not None else original
            return chosen(*args, **arguments)

        return converted

    return convert


dropout_convert = functools.partial(api_func_convert, ToolType="ApiConvert")
