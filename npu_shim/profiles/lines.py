"""The lines of the script that make the ops of a profile: from the profile, graph files, and assessments."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Mapping, Sequence

from npu_shim.dumps import files as dumps_files, graph_files

TABLES = ("lines", "fusion_op")
_MOST_BYTES = 1 << 26  # of an assessment; a timeline may have more


def read(
    folder: str, graphs: Sequence[str], rows: Mapping[str, list[Any]], problems: dict[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the lines by the names of ops, and by their types where only these are known.

    Args:
        folder: of the profile.
        graphs: further folders: graph files, a profile of the CPU, the JSON of ``npu-shim assess``.
        rows: of the tables of both.
        problems: receives what is wrong with files.
    """
    names = {row["name"]: row["line"] for row in rows["lines"]}
    originals = {op.name: op.originals or [] for op in graph_files.find([folder, *graphs], problems)[0].values()}
    originals.update((row["name"], re.split(r"\s*[,;]\s*", row["originals"])) for row in rows["fusion_op"])
    for name, members in originals.items():
        names.setdefault(name, next((names[member] for member in members if names.get(member)), ""))
    types: dict[str, str] = {}
    for path in (path for graph in graphs for path in dumps_files.below(graph, ".json")):
        with dumps_files.noted({}, path):  # most are no assessment
            types.update(_assessed(path) if os.path.getsize(path) <= _MOST_BYTES else {})
    return names, types


def _assessed(path: str) -> dict[str, str]:
    """Return the lines of types that do not run on the device, which an assessment has."""
    with open(path, encoding="utf-8") as stream:
        assessment = json.load(stream)
    graphs = assessment["graphs"] if assessment.get("tool") == "npu-shim assess" else []
    return {row["op"]: row["lines"][0] for one in graphs for row in one["operators"] if row["lines"]}
