"""Operators of a card: our table, or the lists of an installed CANN.

``operators.json`` has three lists of operator types: ``listed`` (operators with an implementation for the device), and
of these the ones that mixed precision computes in 16 bits (``reduce``) or keeps in float32 (``keep``). They approximate
the lists of CANN, from operator information in the vendor's public repositories, since no complete list is published.
What CANN installs decides; give its files with ``--opp``.
"""

from __future__ import annotations

import json
import os
import re
from typing import Iterable, NamedTuple

from npu_shim._host.messages import system_error_text
from npu_shim._tensorflow.types import JsonObject, Value
from npu_shim.import_hook import tool

DEVICE, UNCLEAR, HOST, INPUT = "device", "unclear", "host", "input"
MEANINGS = {
    DEVICE: "runs on the device",
    UNCLEAR: "is on the list of operators, but the vendor's list of functions advises against it or limits it",
    HOST: "is not on the list; the partition keeps it on the host",
    INPUT: "belongs to the input pipeline, which runs on the host and feeds the device",
}
_TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "operators.json")
_INPUT = re.compile(
    r"Iterator|Dataset|^Queue(Dequeue|Enqueue)|^(FIFO|RandomShuffle|PaddingFIFO)Queue|^Reader|^_Arg$|^_Retval$"
)
_REDUCE, _KEEP, _FOLLOW = "reduce", "keep", "follow"


class Lists(NamedTuple):
    """Lists of operators.

    Attributes:
        source: where they are from.
        device: types that the device runs.
        unclear: of these, types that the lists of functions exclude or limit.
        gray: types that it runs, except in mixed compilation.
        reduce: types that mixed precision computes in 16 bits.
        keep: types that it keeps in float32; all others follow the operator before them.
    """

    source: str
    device: frozenset[str]
    unclear: frozenset[str]
    gray: frozenset[str]
    reduce: frozenset[str]
    keep: frozenset[str]

    def device_status(self, op: str) -> str:
        """Return DEVICE, UNCLEAR, HOST or INPUT for an operator type."""
        if _INPUT.search(op):
            return INPUT
        if op not in self.device:
            return HOST
        return UNCLEAR if op in self.unclear else DEVICE

    def precision_rule(self, op: str) -> str:
        """Return "reduce", "keep" or "follow" for an operator type."""
        return _REDUCE if op in self.reduce else _KEEP if op in self.keep else _FOLLOW


def built_in_lists() -> Lists:
    """Return our table."""
    with open(_TABLE, encoding="utf-8") as stream:
        table = {name: frozenset(" ".join(lines).split()) for name, lines in json.load(stream).items()}
    return Lists(
        "the table of npu_shim",
        table["listed"],
        _unclear_operators(table["listed"]),
        frozenset(),
        table["reduce"],
        table["keep"],
    )


def read_cann_lists(paths: Iterable[str]) -> Lists:
    """Return the lists of an installed CANN.

    Args:
        paths: of files such as ``npu_supported_ops.json`` (``{"Abs": {"isGray": false}}``), which names the
            operators of the device, and ``aic-*-ops-info*.json``
            (``{"Conv2D": {"precision_reduce": {"flag": "true"}}}``), which has the lists of mixed precision.
            With files of the second kind only, the device runs the operators of our table and of the files.
    Raises:
        ValueError: a file is no such JSON.
    """
    entries: dict[str, JsonObject] = {}
    names_device = False
    for path in paths:
        content = _read_json(path)
        names_device = names_device or any("isGray" in entry or "isHeavy" in entry for entry in content.values())
        for name, entry in content.items():
            entries.setdefault(name, {}).update(entry)
    table = built_in_lists()
    flags = {
        name: str(_precision_flag(entry)).lower() for name, entry in entries.items() if "precision_reduce" in entry
    }
    listed = {name for name, entry in entries.items() if "isGray" in entry or "isHeavy" in entry}
    device = frozenset(listed if names_device else table.device | set(entries))
    return Lists(
        ", ".join(os.path.basename(path) for path in paths),
        device,
        _unclear_operators(device),
        frozenset(name for name, entry in entries.items() if entry.get("isGray") is True),
        frozenset(name for name, flag in flags.items() if flag == "true") if flags else table.reduce,
        frozenset(name for name, flag in flags.items() if flag == "false") if flags else table.keep,
    )


def with_mixlist_changes(lists: Lists, path: str) -> Lists:
    """Return lists with the changes of a file for the option modify_mixlist.

    Raises:
        ValueError: the file is missing, or has another form.
    """
    from npu_shim.options.precision_files import check_mixlist

    content = _read_json(path)
    check_mixlist(path)
    reduce, keep = set(lists.reduce), set(lists.keep)
    for name, own in (("white-list", reduce), ("black-list", keep)):
        own.difference_update(content.get(name, {}).get("to-remove", ()))
    for name, own, other in (("white-list", reduce, keep), ("black-list", keep, reduce), ("gray-list", set(), set())):
        added = content.get(name, {}).get("to-add", ())
        own.update(added)
        other.difference_update(added)
        if name == "gray-list":
            reduce.difference_update(added)
            keep.difference_update(added)
    return lists._replace(reduce=frozenset(reduce), keep=frozenset(keep))


def _read_json(path: str) -> dict[str, JsonObject]:
    try:
        with open(path, encoding="utf-8") as stream:
            content = json.load(stream)
    except OSError as error:
        raise ValueError(f"{system_error_text(error)}. Give a file of CANN's folder opp.") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not JSON: {error}. Give npu_supported_ops.json or aic-*-ops-info*.json."
        ) from error
    if not isinstance(content, dict) or not content or not all(isinstance(entry, dict) for entry in content.values()):
        raise ValueError(
            f'{path}: expected an object with an object for each operator, like {{"Abs": {{"isGray": false}}}}. '
            "Give npu_supported_ops.json or aic-*-ops-info*.json."
        )
    return content


def _precision_flag(entry: JsonObject) -> Value:
    value = entry["precision_reduce"]
    return value.get("flag") if isinstance(value, dict) else value


def _unclear_operators(device: Iterable[str]) -> frozenset[str]:
    """Return the operators that the tables of the migration tool exclude or limit by the names of their functions."""
    tool.make_importable()
    from convert_tf2npu.api import names_of_unclear_support

    names = names_of_unclear_support()
    return frozenset(op for op in device if op in names or _function_name(op) in names)


def _function_name(op: str) -> str:
    """Return the name of an operator as functions spell it: ``is_nan`` for IsNan, ``ctc_loss`` for CTCLossV2."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", re.sub(r"V\d+$", "", op))
    return words.lower()
