"""Fields of the JSON objects of a rank table, and the problems found in them with their JSON paths."""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass, field
from typing import Hashable, Iterable, Iterator, Sequence

from npu_shim._tensorflow.types import JsonObject
from npu_shim.distributed.ranktable.model import ERROR, WARNING, Device, Extras, Problem, RankTable, count_text

_DIGITS = re.compile(r"^[0-9]{1,9}$")


@dataclass(frozen=True)
class DevicePath:
    """A device and its JSON paths: of its object, its rank_id and its server_id."""

    server_id: str
    device: Device
    path: str
    rank_path: str
    server_path: str


@dataclass
class Reading:
    """The content of a file: the table, the paths of all devices, and the problems."""

    table: RankTable | None = None
    devices: list[DevicePath] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def report(self, path: str, text: str, advice: str, severity: str = ERROR) -> None:
        """Add a problem."""
        self.problems.append(Problem(path, text, advice, severity))


class Incomplete(Exception):
    """The file is incomplete; the problem has been reported."""


def add_device_paths(
    reading: Reading, server_id: str, server_path: str, devices: Sequence[tuple[Device, str, str]]
) -> None:
    """Add the devices of a server, each with the paths of its object and its rank."""
    reading.devices += [
        DevicePath(server_id, device, path, rank_path, server_path) for device, path, rank_path in devices
    ]


def repeated_key_paths(named: Iterable[tuple[Hashable, str]]) -> Iterator[tuple[str, str]]:
    """Yield the path of each key that is given again, and the path at which it is given first."""
    first: dict[Hashable, str] = {}
    for key, path in named:
        if key in first:
            yield path, first[key]
        first.setdefault(key, path)


def objects_in_list(
    entry: JsonObject, key: str, path: str, reading: Reading, may_be_empty: bool = False
) -> list[tuple[str, JsonObject]]:
    """Return the objects of a list, each with its path."""
    entries = required_value(entry, key, path, reading)
    if not isinstance(entries, list) or not (entries or may_be_empty):
        reading.report(
            f"{path}.{key}", f"is {json_value_text(entries)}", "Write a list of at least one object: [{ ... }]"
        )
        raise Incomplete
    for at, one in enumerate(entries):
        if not isinstance(one, dict):
            reading.report(f"{path}.{key}[{at}]", f"is {json_value_text(one)}", "Write an object: { ... }")
            raise Incomplete
    return [(f"{path}.{key}[{at}]", one) for at, one in enumerate(entries)]


def read_optional_text(entry: JsonObject, key: str, path: str, reading: Reading) -> str | None:
    """Return a string, or an integer as a string; None if the key does not exist."""
    return read_text_field(entry, key, path, reading, may_be_empty=True) if key in entry else None


def read_text_field(entry: JsonObject, key: str, path: str, reading: Reading, may_be_empty: bool = False) -> str:
    """Return a string, or an integer as a string."""
    value = required_value(entry, key, path, reading)
    if isinstance(value, bool) or not isinstance(value, (str, int)) or (value == "" and not may_be_empty):
        reading.report(f"{path}.{key}", f"is {json_value_text(value)}", 'Write a string: "..."')
        raise Incomplete
    return str(value)


def read_number_field(entry: JsonObject, key: str, path: str, reading: Reading) -> int:
    """Return an integer of at least 0, which may be a string."""
    digits = read_text_field(entry, key, path, reading).strip()
    if not _DIGITS.match(digits):
        reading.report(f"{path}.{key}", f"is {digits[:40]!r}", 'Write an integer of at least 0, such as "0"')
        raise Incomplete
    return int(digits)


def check_declared_count(
    entry: JsonObject, key: str, actual_count: int, path: str, list_key: str, reading: Reading, noun: str = "entry",
    is_required: bool = False, severity: str = ERROR, is_quoted: bool = True,
) -> None:  # fmt: skip
    """Compare a declared number with the length of a list; the dialect has it in quotes, or not."""
    right = f'Write "{key}": ' + (f'"{actual_count}"' if is_quoted else f"{actual_count}")
    if key not in entry and not is_required:
        return
    if key not in entry:
        reading.report(path, f"has no {key}{similar_key_text((key,), entry)}", right, WARNING)
    elif str(entry[key]).strip() != str(actual_count):
        reading.report(
            f"{path}.{key}",
            f"is {entry[key]!r}, but there {'is' if actual_count == 1 else 'are'} "
            f"{count_text(actual_count, noun, 'entries' if noun == 'entry' else '')} in {list_key}",
            f"{right}, or complete the list",
            severity,
        )


def required_value(entry: JsonObject, key: str, path: str, reading: Reading) -> object:
    """Return the value of a key, or report that it is missing."""
    if key not in entry:
        reading.report(path, f"has no {key}{similar_key_text((key,), entry)}", f"Add {key}")
        raise Incomplete
    return entry[key]


def similar_key_text(missing_keys: Sequence[str], entry: JsonObject) -> str:
    """Return the key of an object that may be a misspelling of a wanted key, as the end of a sentence."""
    near = [one for key in missing_keys for one in difflib.get_close_matches(key, list(entry), 1, 0.75)]
    return f", but {near[0]}" if near else ""


def unknown_keys(entry: JsonObject, known: Sequence[str]) -> Extras:
    """Return the keys that have no field in the model."""
    return tuple((key, json.dumps(value, sort_keys=True)) for key, value in sorted(entry.items()) if key not in known)


def json_value_text(value: object) -> str:
    """Return a JSON value as an error names it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return json.dumps(value)
    return "an empty list" if value == [] else "a list" if isinstance(value, list) else "an object"
