"""Op debug files: which unit of the device reported an overflow, in which task.

They are dumps of type ``Opdebug`` with one output, or JSON that the vendor's tool made of one. The older generation
has three parts of fixed size, for two kinds of atomic additions and the AI Core; the newer one begins with a magic
number and names the unit.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

from npu_shim.dumps import dump, files
from npu_shim.dumps.formats import DumpError

_MAGIC = 0x5A5A5A5A
_UNITS = ("AIC", "AIV", "AICPU", "SDMA")
_CORE = ("model_id stream_id task_id task_type context_id thread_id pc_start para_base core_id block_id status").split()
_FIELDS = {
    "AIC": _CORE,
    "AIV": _CORE,
    "SDMA": _CORE[:6] + ["src_addr", "dst_addr", "channel_id", "status"],
    "AICPU": _CORE[:5] + ["cpu_id", "thread_id", "status"],
}
_OLD = {"DHA Atomic Add": (0, 512), "L2 Atomic Add": (128, 768), "AI Core": (256, 1024 + 16)}  # task and status
_OLD_SIZE = 2048
_ANY = 0xFFFF  # a context or thread that counts for all


@dataclass(frozen=True)
class Report:
    """An overflow that a unit reported.

    Attributes:
        file: of the report.
        unit: "AI Core", "AIC", "AIV", "AICPU", "SDMA" or an atomic addition.
        task, stream, context, thread: of the operator; -1 for any.
        status: of the unit, never 0.
    """

    file: files.DumpFile
    unit: str
    task: int
    stream: int
    context: int
    thread: int
    status: int

    def is_of(self, file: files.DumpFile) -> bool:
        """Return True for a dump of the operator that this reports."""
        mine = self.task, self.stream, self.context, self.thread
        its = file.task, file.stream, file.context, file.thread
        named = all(one in (-1, other) for one, other in zip(mine[:2], its))
        return named and all(-1 in each or each[0] == each[1] for each in zip(mine[2:], its[2:]))


def read(file: files.DumpFile) -> list[Report]:
    """Return the overflows of an op debug file.

    Raises:
        ValueError: the file is none.
    """
    units: list[tuple[str, dict[str, Any]]] = []
    if file.path.endswith(".json"):
        with open(file.path, encoding="utf-8") as stream:
            units = _of_json(json.load(stream))
    else:
        with open(file.path, "rb") as raw:
            for output in dump.read(file.path).outputs:
                raw.seek(output.data[0])
                units += _of_bytes(raw.read(min(output.size, 1 << 16)))
    found = []
    for unit, values in units:
        status = values["status"]
        status = next((each for each in status if each), 0) if isinstance(status, list) else status
        numbers = [values.get(name, -1) for name in ("task_id", "stream_id", "context_id", "thread_id")]
        if not all(isinstance(number, int) for number in [*numbers, status]):
            raise ValueError(f"task, stream or status of {unit} is no number")
        task, stream, context, thread = numbers[:2] + [-1 if number == _ANY else number for number in numbers[2:]]
        found += [Report(file, unit, task, stream, context, thread, status)] if status else []
    return found


def _of_bytes(raw: bytes) -> list[tuple[str, dict[str, Any]]]:
    if len(raw) >= 24 and struct.unpack_from("<I", raw)[0] == _MAGIC:
        version, _, unit = struct.unpack_from("<3I", raw, 4)
        if unit >= len(_UNITS):
            raise DumpError(f"unit {unit} is unknown. The units are 0 to {len(_UNITS) - 1}")
        name = _UNITS[unit]
        fields = _FIELDS[name] + [f"status_{n}" for n in range(1, 4)] * (version == 1 and unit < 2)
        if len(raw) < 24 + 8 * len(fields):
            raise DumpError(f"{len(raw)} bytes are too few for a report of {name}")
        values = dict(zip(fields, struct.unpack_from(f"<{len(fields)}Q", raw, 24)))
        return [(name, {**values, "status": [values[each] for each in fields if "status" in each]})]
    if len(raw) != _OLD_SIZE:
        raise DumpError(f"{len(raw)} bytes are no report of an overflow, which has a magic number or {_OLD_SIZE} bytes")
    found = []
    for name, (place, status) in _OLD.items():
        _, stream, task = struct.unpack_from("<3Q", raw, place)
        state = struct.unpack_from("<Q", raw, status)[0]
        found.append((name, {"task_id": task, "stream_id": stream, "status": state}))
    return found


def _of_json(made: Any) -> list[tuple[str, dict[str, Any]]]:
    parts = list(made.items()) if isinstance(made, dict) else []
    if parts and "magic" in made:
        units = made.get("acc_list")
        units = units if isinstance(units, list) else [units]
        parts = [(each.get("acc_type"), each.get("data")) for each in units if isinstance(each, dict)]
    if not parts or not all(isinstance(values, dict) and "status" in values for _, values in parts):
        raise ValueError("it has no unit with a status")
    return [(str(unit), values) for unit, values in parts]
