"""The files that steer mixed precision, read as the card's compiler reads them.

A file may lie on the machine with the card only, so one that is not here is
left to it. What is read here and wrong there is told before the job is sent.
"""

from __future__ import annotations

import glob
import json
import os
import re
import sys
import warnings
from typing import Any, Iterable

from npu_shim import _env
from npu_shim.options.near import closest

_LISTS = ("black-list", "white-list", "gray-list")
_MOVES = ("to-add", "to-remove")
_TYPES = (
    "float16",
    "float32",
    "bfloat16",
    "float",
    "double",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
)
_NAMED = re.compile(r"^(?P<name>[^:\s]+)::(?P<rest>.+)$")
_TYPED = re.compile(r"^OpType::(?P<name>[^:\s]+):(?P<rest>.+)$")
_DTYPES = re.compile(r"^InputDtype:(?P<inputs>[\w,]*?),?OutputDtype:(?P<outputs>[\w,]*)$")


def check_mixlist(path: str) -> None:
    """Checks a file for ``modify_mixlist``.

    It is a JSON object of "black-list" (operators that keep float32),
    "white-list" (that take the lower precision) and "gray-list" (that do as
    the operator before them), each with "to-add" and "to-remove", lists of
    operator types.

    Args:
        path: its name.
    Raises:
        ValueError: it is no such JSON, or moves one operator into two lists.
    """
    if not os.path.isfile(path):
        return
    content = _json(path)
    _check_keys(content, path, "", _LISTS)
    seen: dict[str, str] = {}
    for name, moves in content.items():
        _check_keys(moves, path, name, _MOVES)
        for move, types in moves.items():
            where = f"{name}.{move}"
            if not isinstance(types, list) or not all(isinstance(one, str) for one in types):
                raise _wrong(path, where, types, 'a list of operator types, like ["MatMul", "Conv2D"]')
            for one in types if move == "to-add" else ():
                if seen.setdefault(one, where) != where:
                    raise ValueError(
                        f"modify_mixlist={path!r}: {one!r} stands in {seen[one]} and in {where}. Leave one out."
                    )
            _look_up(types, f"modify_mixlist={path!r}: {where}")


def check_dtypes(path: str) -> None:
    """Checks a file for ``customize_dtypes``.

    Each line is ``NAME::InputDtype:T,...,OutputDtype:T,...`` for an operator of
    the graph, or ``OpType::TYPE:InputDtype:T,...,OutputDtype:T,...`` for all of
    a type; there is one T for each input and output.

    Args:
        path: its name.
    Raises:
        ValueError: a line has another form, or an unknown T.
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
        found = typed or _NAMED.match(line)
        types = found and _DTYPES.match(found.group("rest").replace(" ", ""))
        if not found or not types:
            raise ValueError(
                f"{where}: {line!r} is not allowed: it must be NAME::InputDtype:T,...,OutputDtype:T,... for one operator, or "
                "OpType::TYPE:InputDtype:T,...,OutputDtype:T,... for all of a type."
            )
        for one in (types.group("inputs") + "," + types.group("outputs")).split(","):
            if one and one not in _TYPES:
                raise ValueError(
                    f"{where}: {one!r} is no type.{closest(one, _TYPES)} Write one of {', '.join(_TYPES)}."
                )
        if typed:
            _look_up([typed.group("name")], where)


def _json(path: str) -> Any:
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    try:
        return json.loads(text)
    except ValueError as error:
        comment = re.search(r"(?m)^[^\"]*(\"[^\"]*\"[^\"]*)*//", text)
        told = " Comments are no JSON: take them out." if comment else ""
        raise ValueError(f"modify_mixlist={path!r} is no JSON: {error}.{told}") from error


def _check_keys(value: Any, path: str, where: str, allowed: Iterable[str]) -> None:
    if not isinstance(value, dict):
        raise _wrong(path, where or "the file", value, "an object with " + " and ".join(allowed))
    for key in value:
        if key not in allowed:
            raise ValueError(
                f"modify_mixlist={path!r}: {where + '.' if where else ''}{key} is unknown."
                f"{closest(key, allowed)} Allowed are {', '.join(allowed)}."
            )


def _wrong(path: str, where: str, value: Any, allowed: str) -> ValueError:
    return ValueError(f"modify_mixlist={path!r}: {where} is {value!r}, but must be {allowed}.")


def _look_up(types: list[str], where: str) -> None:
    """Warns of operator types that look misspelt."""
    known = _operator_types()
    for one in types:
        near = closest(one, known) if known and one not in known else ""
        if near:
            warnings.warn(
                f"{where}: {one!r} is no operator type that is known here, so the entry may have no effect.{near}",
                UserWarning,
                stacklevel=2,
            )


def _operator_types() -> set[str]:
    """Operator types of the card's compiler where it is installed, and of TensorFlow where it is imported.

    The two agree in most names.
    """
    known: set[str] = set()
    config = os.path.join(_env.opp_path(), "built-in/op_impl/ai_core/tbe/config/*/aic-*-ops-info*.json")
    for path in glob.glob(config):
        with open(path, encoding="utf-8") as file:
            known.update(json.load(file))
    if "tensorflow" in sys.modules:
        from npu_shim import _tf_graph

        known.update(_tf_graph.operator_types())
    return known
