"""Checks of the files that control mixed precision, as the NPU's compiler reads them.

A file may exist only on the machine with the NPU. A file that is missing here
is not checked.
"""

from __future__ import annotations

import glob
import json
import os
import re
import sys
import warnings
from typing import Iterable

from npu_shim._host import host_env
from npu_shim.options.near import did_you_mean

_LISTS = ("black-list", "white-list", "gray-list")
_MOVES = ("to-add", "to-remove")
_TYPES = "float16 float32 bfloat16 float double int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split()
_NAMED = re.compile(r"^(?P<name>[^:\s]+)::(?P<rest>.+)$")
_TYPED = re.compile(r"^OpType::(?P<name>[^:\s]+):(?P<rest>.+)$")
_DTYPES = re.compile(r"^InputDtype:(?P<inputs>[\w,]*?),?OutputDtype:(?P<outputs>[\w,]*)$")


def check_mixlist(path: str) -> None:
    """Check a file for ``modify_mixlist``.

    It is a JSON object with "black-list" (operators that keep float32),
    "white-list" (operators with lower precision) and "gray-list" (operators
    with the precision of the operator before them). Each has "to-add" and
    "to-remove", which are lists of operator types.

    Args:
        path: of the file.
    Raises:
        ValueError: if it is not such JSON, or adds one operator to two lists.
    """
    if not os.path.isfile(path):
        return
    content = _checked_object(_read_json(path), path, "", _LISTS)
    seen: dict[str, str] = {}
    for name, moves in content.items():
        for move, types in _checked_object(moves, path, name, _MOVES).items():
            where = f"{name}.{move}"
            if not isinstance(types, list) or not all(isinstance(one, str) for one in types):
                raise _wrong_value_error(path, where, types, 'a list of operator types, like ["MatMul", "Conv2D"]')
            for one in types if move == "to-add" else ():
                if seen.setdefault(one, where) != where:
                    raise ValueError(f"modify_mixlist={path!r}: {one!r} is in {seen[one]} and in {where}. Remove one.")
            _check_operator_types(types, f"modify_mixlist={path!r}: {where}")


def check_dtypes(path: str) -> None:
    """Check a file for ``customize_dtypes``.

    Each line is ``NAME::InputDtype:T,...,OutputDtype:T,...`` for an operator of
    the graph, or ``OpType::TYPE:InputDtype:T,...,OutputDtype:T,...`` for all of
    a type, with one T for each input and output.

    Args:
        path: of the file.
    Raises:
        ValueError: if a line has another form, or an unknown T.
    """
    if not os.path.isfile(path):
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file]
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        where = f"customize_dtypes={path!r}, line {number}"
        typed = _TYPED.match(line)
        match = typed or _NAMED.match(line)
        types = match and _DTYPES.match(match.group("rest").replace(" ", ""))
        if not match or not types:
            raise ValueError(
                f"{where}: {line!r} is not allowed: it must be NAME::InputDtype:T,...,OutputDtype:T,... "
                "for one operator, or OpType::TYPE:InputDtype:T,...,OutputDtype:T,... for all of a type."
            )
        for one in (types.group("inputs") + "," + types.group("outputs")).split(","):
            if one and one not in _TYPES:
                raise ValueError(
                    f"{where}: {one!r} is not a type.{did_you_mean(one, _TYPES)} Write one of {', '.join(_TYPES)}."
                )
        if typed:
            _check_operator_types([typed.group("name")], where)


def _read_json(path: str) -> object:
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        comment = re.search(r"(?m)^[^\"]*(\"[^\"]*\"[^\"]*)*//", text)
        hint = " JSON has no comments: remove them." if comment else ""
        raise ValueError(f"modify_mixlist={path!r} is not JSON: {error}.{hint}") from error


def _checked_object(value: object, path: str, where: str, allowed: Iterable[str]) -> dict[str, object]:
    """Return a JSON object after a check of its keys."""
    if not isinstance(value, dict):
        raise _wrong_value_error(path, where or "the file", value, "an object with " + " and ".join(allowed))
    for key in value:
        if key not in allowed:
            raise ValueError(
                f"modify_mixlist={path!r}: {where + '.' if where else ''}{key} is unknown."
                f"{did_you_mean(key, allowed)} Allowed are {', '.join(allowed)}."
            )
    return value


def _wrong_value_error(path: str, where: str, value: object, allowed: str) -> ValueError:
    return ValueError(f"modify_mixlist={path!r}: {where} is {value!r}, but must be {allowed}.")


def _check_operator_types(types: list[str], where: str) -> None:
    """Warn about operator types that look misspelt."""
    known = _operator_types()
    for one in types:
        near = did_you_mean(one, known) if known and one not in known else ""
        if near:
            warnings.warn(
                f"{where}: {one!r} is not a known operator type, so the entry may have no effect.{near}",
                UserWarning,
                stacklevel=2,
            )


def _operator_types() -> set[str]:
    """Return the operator types of the NPU's compiler and of TensorFlow, if imported.

    The two agree in most names. The types of the compiler are those of CANN's public operator headers, which
    operator_types.json lists, and those of an installed compiler.
    """
    with open(os.path.join(os.path.dirname(__file__), "operator_types.json"), encoding="utf-8") as file:
        known = set(json.load(file))
    config = os.path.join(host_env.opp_path(), "built-in/op_impl/ai_core/tbe/config/*/aic-*-ops-info*.json")
    for path in glob.glob(config):
        with open(path, encoding="utf-8") as file:
            known.update(json.load(file))
    if "tensorflow" in sys.modules:
        from npu_shim._tensorflow import tf_graph

        known.update(op.name for op in tf_graph.operator_definitions())
    return known
