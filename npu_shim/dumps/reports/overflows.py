"""The report of overflows as text."""

from __future__ import annotations

from typing import Callable, Iterator, Mapping

from npu_shim._tensorflow.types import JsonObject
from npu_shim.dumps.reports.text import problems
from npu_shim.rehearsal.reports import to_json
from npu_shim.rehearsal.sections import to_lines

_MOST = 20


def to_text(result: JsonObject, all_rows: bool = False) -> str:
    """Return the report as text that ends with a line feed."""
    return "\n".join(_lines(result, None if all_rows else _MOST)) + "\n"


def _lines(result: JsonObject, most: int | None) -> Iterator[str]:
    entries = result["overflows"]
    if not entries:
        yield "no overflow: the folder has no op debug files. Check that it is the dump_path of the run."
    bad = [entry for entry in entries if entry["verdict"] == "not normal"]
    for entry in (bad or entries)[:1]:
        of_step = f"step {entry['step']}, " if entry["step"] >= 0 else ""
        yield f"first overflow{' that is not normal' if bad else ''}: {of_step}{_name(entry)}\n  {entry['reason']}"
    for entry in entries[:most]:
        if entry["first"]:
            scale = "" if entry["loss_scale"] is None else f", loss scale {entry['loss_scale']:g}"
            yield f"step {entry['step']}{scale}:" if entry["step"] >= 0 else "step unknown:"
        of_unit = f"{entry['unit']}, status {entry['status']:#x}, {entry['verdict']}"
        yield f"  {_name(entry)}: {of_unit}\n    {entry['reason']}"
        for side in ("inputs", "outputs"):
            yield from (f"    {side[:-1]} {place}: {_range(tensor)}" for place, tensor in enumerate(entry[side]))
    if len(entries[:most]) < len(entries):
        yield f"... and {len(entries) - len(entries[:most])} more: see -r DIR"
    yield from to_lines(problems(result), most)


def _name(entry: JsonObject) -> str:
    if not entry["operator"]:
        return f"task {entry['task']} of stream {entry['stream']}"
    made_from = f" from {', '.join(entry['originals'])}" if entry["originals"] not in ([], [entry["operator"]]) else ""
    return f"{entry['operator']} ({entry['type']}{made_from})"


def _range(tensor: JsonObject) -> str:
    what = f"{tensor['type']} {tensor['shape']}"
    if tensor["problem"]:
        return f"{what}, {tensor['problem']}"
    low_to_high = "" if tensor["low"] is None else f", {tensor['low']:g} to {tensor['high']:g}"
    bad = f", {tensor['not_finite']} Inf or NaN" if tensor["not_finite"] else ""
    return what + low_to_high + bad + (f", {tensor['saturated']} at 65504" if tensor["saturated"] else "")


WRITERS: Mapping[str, Callable[[JsonObject], str]] = {
    "overflow.txt": lambda result: to_text(result, all_rows=True),
    "overflow.json": to_json,
}
