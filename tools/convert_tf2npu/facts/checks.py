"""Checks of the content of a file of facts. What ``npu-shim observe`` writes passes them.

Rules write sizes into scripts and compute with them, so nothing else may reach them, whoever made the file.
"""

from __future__ import annotations

import json
import math
import posixpath
from typing import Any, BinaryIO, Sequence

from .seen import MOST_DISTINCT, Json

MOST_BYTES = 1 << 26  # of a file
_MOST = 1 << 62  # of a size
_ENDINGS = ("returned", "stopped", "error")
_BOOLS = frozenset("""partial lost mixed sums large eager trains updates counted constant changes skips""".split())
_SIZES = frozenset({"rank", "rows", "last", "length", "size", "batch", "examples"})
_TEXTS = frozenset({"dtype", "place", "used", "trained_by", "is", "in", "shapes"})
_TUPLES = {"shape": int, "parameters": str, "narrowed": str}


def parse_json(stream: BinaryIO) -> object:
    """Return the JSON value in a file.

    Raises:
        ValueError: there is none, it is too large or too deep, or a key is twice in an object.
    """
    raw = stream.read(MOST_BYTES + 1)
    _require(len(raw) <= MOST_BYTES)
    try:
        return json.loads(raw.decode("utf-8"), object_pairs_hook=_dict_without_repeated_keys)
    except RecursionError:
        raise ValueError


def _dict_without_repeated_keys(pairs: Sequence[tuple[str, Any]]) -> Json:
    _require(len(dict(pairs)) == len(pairs))
    return dict(pairs)


def check_facts(content: Json) -> None:
    """Raise ValueError if types, ranges or counts in a file of facts are impossible; else whatever Python raises."""
    _require(isinstance(content.get("other_roots", []), list))
    for root in (content["root"], *content.get("other_roots", ())):
        _require(isinstance(root, str) and not posixpath.isabs(root))
    for run in content["runs"]:
        for words in run["command"], run.get("outside", []):
            _require(isinstance(words, list) and all(isinstance(word, str) for word in words))
        _require(isinstance(run["tensorflow"], str) and isinstance(run["python"], str))
        _require(_is_size(run["steps"]) and run["ended"] in _ENDINGS)
    for name, file in content["files"].items():
        _require(not posixpath.isabs(name) and posixpath.normpath(name) == name)
        _check_file_facts(file, len(content["runs"]))


def _check_file_facts(file: Json, runs: int) -> None:
    _require(isinstance(file["sha256"], str) and len(file["sha256"]) == 64)
    blocks, places = [tuple(block) for block in file["blocks"]], [(*part["at"], part["kind"]) for part in file["facts"]]
    for first, last, ran in blocks:
        _require(_is_size(first, 1) and _is_size(last, first) and _is_size(ran) and ran <= runs)
    for *at, kind in places:
        _require(
            len(at) == 4 and all(_is_size(number, 1) for number in at) and at[:2] < at[2:] and isinstance(kind, str)
        )
    _require(len(set(places)) == len(places) and len({block[:2] for block in blocks}) == len(blocks))
    for part in file["facts"]:
        _require(_is_size(part["runs"], 1) and part["runs"] <= runs and _is_size(part["times"], part["runs"]))
        for attribute, values in part["values"].items():
            _check_attribute_values(attribute, values)


def _check_attribute_values(attribute: str, values: Json) -> None:
    """Check the values of an attribute: their types, that none is there twice, and that the bounds are theirs."""
    distinct, least, most = values["distinct"], values["least"], values["most"]
    _require(isinstance(distinct, list) and all(_is_possible_value(attribute, value) for value in distinct))
    _require(
        0 < len(distinct) <= MOST_DISTINCT and len({(type(value), str(value)) for value in distinct}) == len(distinct)
    )
    _require(isinstance(values["more"], bool) and (not values["more"] or len(distinct) == MOST_DISTINCT))
    numbers = [value for value in distinct if isinstance(value, (int, float)) and not isinstance(value, bool)]
    bounds = (min(numbers), max(numbers)) if numbers else (None, None)
    if values["more"] and numbers:
        _require(_is_possible_value(attribute, least) and _is_possible_value(attribute, most))
        _require(least <= bounds[0] and most >= bounds[1])
    else:
        _require((least, most) == bounds and not isinstance(least, bool) and not isinstance(most, bool))


def _is_possible_value(attribute: str, value: object) -> bool:
    """Return True if an attribute can have a value. Of attributes that are not known here any plain value is."""
    if attribute in _BOOLS:
        return isinstance(value, bool)
    if attribute in _SIZES or attribute.startswith("axis:"):
        return _is_size(value)
    if attribute in _TEXTS:
        return isinstance(value, str)
    if attribute in _TUPLES:
        kind = _TUPLES[attribute]
        return isinstance(value, list) and all(
            _is_size(part) if kind is int else isinstance(part, str) for part in value
        )
    return all(_is_plain_value(part) for part in (value if isinstance(value, list) else [value]))


def _is_size(value: object, least: int = 0) -> bool:
    return type(value) is int and least <= value < _MOST


def _is_plain_value(value: object) -> bool:
    if isinstance(value, (int, float)):
        return abs(value) < _MOST and math.isfinite(value)
    return value is None or isinstance(value, str)


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError


__all__ = ["MOST_BYTES", "check_facts", "parse_json"]
