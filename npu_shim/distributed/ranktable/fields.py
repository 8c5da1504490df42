"""The JSON objects of a rank table, and the problems found in their fields, with JSON paths."""

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
    """A device with the name of its server, and the JSON paths of its object and its rank_id."""

    server_id: str
    device: Device
    path: str
    rank_path: str


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


class Entry:
    """A JSON object of a file. What is wrong with its fields is reported.

    Args:
        content: the object.
        path: its JSON path.
        reading: receives the problems.
    Raises:
        Incomplete: a problem was reported: it is no object. Methods raise it for a field without a usable value.
    """

    def __init__(self, content: object, path: str, reading: Reading) -> None:
        if not isinstance(content, dict):
            fix = "Write one object: { ... }" if path == "$" else "Write an object: { ... }"
            reading.report(path, f"is {json_value_text(content)}", fix)
            raise Incomplete
        self.content: JsonObject = content
        self.path, self._reading = path, reading

    def report(self, key: str, text: str, advice: str, severity: str = ERROR) -> None:
        """Report a problem of a field; of the object itself if the key is empty."""
        self._reading.report(f"{self.path}.{key}" if key else self.path, text, advice, severity)

    def objects(self, key: str, may_be_empty: bool = False) -> list[Entry]:
        """Return the objects of a list."""
        entries = self.required(key)
        if not isinstance(entries, list) or not (entries or may_be_empty):
            self.report(key, f"is {json_value_text(entries)}", "Write a list of at least one object: [{ ... }]")
            raise Incomplete
        return [Entry(one, f"{self.path}.{key}[{at}]", self._reading) for at, one in enumerate(entries)]

    def optional_text(self, key: str) -> str | None:
        """Return a string, or an integer as a string; None if the key does not exist."""
        return self.text(key, may_be_empty=True) if key in self.content else None

    def text(self, key: str, may_be_empty: bool = False) -> str:
        """Return a string, or an integer as a string."""
        value = self.required(key)
        if isinstance(value, bool) or not isinstance(value, (str, int)) or (value == "" and not may_be_empty):
            self.report(key, f"is {json_value_text(value)}", 'Write a string: "..."')
            raise Incomplete
        return str(value)

    def number(self, key: str) -> int:
        """Return an integer of at least 0, which may be a string."""
        digits = self.text(key).strip()
        if not _DIGITS.match(digits):
            self.report(key, f"is {digits[:40]!r}", 'Write an integer of at least 0, such as "0"')
            raise Incomplete
        return int(digits)

    def required(self, key: str) -> object:
        """Return the value of a key, or report that it is missing."""
        if key not in self.content:
            self.report("", f"has no {key}{self.similar_key_text(key)}", f"Add {key}")
            raise Incomplete
        return self.content[key]

    def check_count(
        self, key: str, actual_count: int, list_key: str, noun: str = "entry", is_required: bool = False,
        severity: str = ERROR, is_quoted: bool = True,
    ) -> None:  # fmt: skip
        """Compare a declared number with the length of a list; the dialect has it in quotes, or not."""
        right = f'Write "{key}": ' + (f'"{actual_count}"' if is_quoted else f"{actual_count}")
        if key not in self.content and not is_required:
            return
        if key not in self.content:
            self.report("", f"has no {key}{self.similar_key_text(key)}", right, WARNING)
        elif str(self.content[key]).strip() != str(actual_count):
            counted = count_text(actual_count, noun, "entries" if noun == "entry" else "")
            there = f"there {'is' if actual_count == 1 else 'are'} {counted} in {list_key}"
            self.report(key, f"is {self.content[key]!r}, but {there}", f"{right}, or complete the list", severity)

    def similar_key_text(self, *missing_keys: str) -> str:
        """Return the key that may be a misspelling of a wanted one, as the end of a sentence."""
        near = [one for key in missing_keys for one in difflib.get_close_matches(key, list(self.content), 1, 0.75)]
        return f", but {near[0]}" if near else ""

    def unknown_keys(self, known: Sequence[str]) -> Extras:
        """Return the keys that have no field in the model, with their values."""
        rest = sorted(set(self.content).difference(known))
        return tuple((key, json.dumps(self.content[key], sort_keys=True)) for key in rest)

    def add_device(self, server_id: str, device: Device, rank_path: str) -> None:
        """Add the device of this object to those of the file."""
        self._reading.devices.append(DevicePath(server_id, device, self.path, rank_path))


def repeated_key_paths(named: Iterable[tuple[Hashable, str]]) -> Iterator[tuple[str, str]]:
    """Yield the path of each key that is given again, and the path at which it is given first."""
    first: dict[Hashable, str] = {}
    for key, path in named:
        if key in first:
            yield path, first[key]
        first.setdefault(key, path)


def json_value_text(value: object) -> str:
    """Return a JSON value as an error names it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return json.dumps(value)
    return "an empty list" if value == [] else "a list" if isinstance(value, list) else "an object"
