"""The parts of a graph that would not run on the card."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject


_SUMMARY = re.compile(r"^(\w*Summary\w*|WriteSummary)$")  # they run on the host after the device's part of a step


def problems_of(graph: JsonObject) -> list[JsonObject]:
    """Return what would not run on the card in a graph."""
    rows = []
    for host in graph["partition"]["host"]:
        if _SUMMARY.match(host["op"]):
            continue
        if host["pulled"] == host["count"]:
            why = "runs on the host, because it shares a resource, string or reference with a node of the host"
        elif host["cpu"]:
            why = "runs on the host: the device has no such operator"
        else:
            why = "does not run: neither the device nor the CPU has it"
        rows.append({"graph": graph["name"], "what": host["op"], "why": why, "lines": host["lines"]})
    for name in graph["partition"]["loops"]:
        why = "runs on the host as a whole: it contains an operator that the device does not have"
        rows.append({"graph": graph["name"], "what": name, "why": why, "lines": []})
    cut, mixed = graph["partition"]["outside_largest"], graph["partition"]["mix_compile_mode"]
    if cut and not mixed:
        why = "run on the host: host operators cut the step, and only the largest cluster goes to the device. "
        rows.append({"graph": graph["name"], "what": f"{cut} further nodes", "why": why + "Set mix_compile_mode, or "
                     "move the host operators out of the step", "lines": []})  # fmt: skip
    return rows
