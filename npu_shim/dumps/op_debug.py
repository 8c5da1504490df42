"""Op debug files: which unit of the device reported an overflow, in which task.

They are dumps of type ``Opdebug`` with one output, or JSON that the vendor's tool made of one. The older generation
has three parts of fixed size, for two kinds of atomic additions and the AI Core; the newer one begins with a magic
number and names the unit.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from npu_shim._tensorflow.types import JsonObject
from npu_shim.dumps import dump, files
from npu_shim.dumps.formats import DumpError

_MAGIC = b"\x5a" * 4
_OLD_SIZE = 2048
_FIELDS = ("status", "task_id", "stream_id", "context_id", "thread_id")
# Unit -> the words of 8 bytes that have these fields; the status of a newer one is the last of a report.
_OLD = {"DHA Atomic Add": (64, 2, 1), "L2 Atomic Add": (96, 18, 17), "AI Core": (130, 34, 33)}
_NEW = {"AIC": (13, 5, 4, 7, 8), "AIV": (13, 5, 4, 7, 8), "AICPU": (10, 5, 4, 7, 9), "SDMA": (12, 5, 4, 7, 8)}
_ANY = 0xFFFF  # a context or thread that counts for all


class Report(NamedTuple):
    """An overflow that a unit reported.

    Attributes:
        unit: "AI Core", "AIC", "AIV", "AICPU", "SDMA" or an atomic addition.
        status: of the unit, never 0.
        file: of the report, with task, stream, context and thread of the operator; -1 for any.
    """

    unit: str
    status: int
    file: files.DumpFile

    def is_about(self, file: files.DumpFile) -> bool:
        """Return True for a dump of the operator that this reports."""
        mine, its = ((of_file.task, of_file.stream, of_file.context, of_file.thread) for of_file in (self.file, file))
        return all(
            -1 == one or one == other or (place > 1 and other == -1)
            for place, (one, other) in enumerate(zip(mine, its))
        )


def read_reports(file: files.DumpFile) -> list[Report]:
    """Return the overflows of an op debug file.

    Raises:
        ValueError, LookupError, TypeError, AttributeError: the file is none.
    """
    units: list[tuple[str, JsonObject]] = []
    if file.path.endswith(".json"):
        with open(file.path, encoding="utf-8") as stream:
            units = _units_of_json(json.load(stream))
    else:
        for output in dump.read_dump(file.path).outputs:
            size = min(output.size, 1 << 16)
            units += _units_of_bytes(
                np.memmap(file.path, np.uint8, "r", output.data[0], (size,)).tobytes() if size else b""
            )
    reports = []
    for unit, values in units:
        status, *numbers = values["status"], *(values.get(name, -1) for name in _FIELDS[1:])
        status = next(filter(None, status), 0) if isinstance(status, list) else status
        if not all(isinstance(number, int) for number in [*numbers, status]):
            raise ValueError(f"task, stream or status of {unit} is no number")
        task, stream, context, thread = numbers[:2] + [-1 if part == _ANY else part for part in numbers[2:]]
        of_operator = replace(file, task=task, stream=stream, context=context, thread=thread)
        reports += [Report(str(unit), status, of_operator)] if status else []
    return reports


def _units_of_bytes(raw: bytes) -> list[tuple[str, JsonObject]]:
    words = np.frombuffer(raw[: len(raw) // 8 * 8], "<u8").tolist()
    if raw[:4] != _MAGIC and len(raw) != _OLD_SIZE:
        raise DumpError(f"{len(raw)} bytes are no report of an overflow, which has a magic number or {_OLD_SIZE} bytes")
    if raw[:4] != _MAGIC:
        return [(name, dict(zip(_FIELDS, (words[place] for place in places)))) for name, places in _OLD.items()]
    version, _, unit = np.frombuffer(raw.ljust(16, b"\xff")[4:16], "<u4").tolist()
    if unit >= len(_NEW):
        raise DumpError(f"unit {unit} is unknown. The units are 0 to {len(_NEW) - 1}")
    name, places = list(_NEW.items())[unit]
    end = places[0] + 1 + 3 * (version == 1 and unit < 2)
    if len(words) < end:
        raise DumpError(f"{len(raw)} bytes are too few for a report of {name}")
    values = dict(zip(_FIELDS, (words[place] for place in places)))
    return [(name, {**values, "status": words[places[0] : end]})]


def _units_of_json(content: JsonObject) -> list[tuple[str, JsonObject]]:
    if "magic" not in content:
        return list(content.items())
    units = content["acc_list"]
    return [(unit["acc_type"], unit["data"]) for unit in (units if isinstance(units, list) else [units])]
