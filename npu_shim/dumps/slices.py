"""Operators that ran in slices: a dump file for each, put together along the axis that was cut.

Slices of threads have the number of the thread in the names of their files; others are operators of their own whose
names end in ``_lxslice0``, ``_lxslice1`` and so on. An attribute of the dump in JSON says how often each axis of each
output is cut.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from typing import Any

from npu_shim.dumps.dump import DumpData
from npu_shim.dumps.files import DumpFile

_SLICE = re.compile("_lxslice([0-9]+)")
_SUBGRAPH = re.compile("^.*sgt_graph_[0-9]+_(?=.)")  # in front of names of operators in slices


def merged(dumps: list[tuple[DumpFile, DumpData]], problems: dict[str, str]) -> list[tuple[DumpFile, DumpData]]:
    """Return dumps with those of slices put together; slices that are missing are added to ``problems``."""
    groups: dict[Any, dict[int, tuple[DumpFile, DumpData]]] = {}
    for number, (file, data) in enumerate(dumps):
        part = _SLICE.search(data.op_name or file.op_name)
        place = int(part.group(1)) if part else file.thread
        of_slice = place >= 0 and bool(_cuts(data))
        key = (_whole(file.op_name), -1 if part else file.task) if of_slice else number
        groups.setdefault(key, {})[place] = file, data  # the last of several counts
    found = []
    for key, members in groups.items():
        file, data = list(members.values())[-1]
        if isinstance(key, tuple):
            cut = _cuts(data)
            wanted = max([1, *itertools.chain(*cut)])
            if sorted(members) != list(range(wanted)):
                problems[file.path] = f"{len(members)} of {wanted} slices of its operator are there"
                continue
            data = _together([members[place] for place in range(wanted)], cut)
        found.append((file, data))
    return found


def _together(parts: list[tuple[DumpFile, DumpData]], cut: list[list[int]]) -> DumpData:
    file, first = parts[0]
    made = dataclasses.replace(first, op_name=_whole(first.op_name or file.op_name), outputs=[], inputs=[])
    for index, output in enumerate(first.outputs):
        axes = [axis for axis, number in enumerate(cut[index] if index < len(cut) else []) if number > 1]
        tensors = [(its_file.path, data.outputs[index]) for its_file, data in parts if index < len(data.outputs)]
        if len(axes) == 1 and axes[0] < min(len(tensor.shape) for _, tensor in tensors):
            shape = list(output.shape)
            shape[axes[0]] = sum(tensor.shape[axes[0]] for _, tensor in tensors)
            whole = output.original_shape if output.original_shape != output.shape else tuple(shape)
            joined: dict[str, Any] = {"shape": tuple(shape), "original_shape": whole, "parts": tensors, "axis": axes[0]}
            output = dataclasses.replace(output, **joined)
        made.outputs.append(output)
    return made


def _cuts(data: DumpData) -> list[list[int]]:
    """Return into how many parts each axis of each output is cut, nothing for an operator that is whole."""
    for text in data.attributes.values():
        try:
            found = json.loads(text).get("outputCutList") if text.startswith("{") else None
        except (ValueError, AttributeError, RecursionError):
            continue
        if isinstance(found, list) and all(isinstance(axes, list) for axes in found):
            return [[n for n in axes if isinstance(n, int)] for axes in found]
    return []


def _whole(name: str) -> str:
    return _SUBGRAPH.sub("", _SLICE.sub("", name))
