"""The lines of the script that make the ops of a profile: from the profile, graph files, dumps and assessments."""

from __future__ import annotations

import json
import os
from typing import Iterable, Sequence

from npu_shim.dumps import files as dumps_files, graph_files, reference
from npu_shim.profiles import files, tables
from npu_shim.profiles.files import ProfileFile

_ASSESSMENT = "npu-shim assess"
_MOST_BYTES = 1 << 26


class Lines:
    """Lines of the script by the names of ops, and by their types where only these are known."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.types: dict[str, str] = {}

    def of(self, name: str, of_type: str) -> str:
        """Return the line of an op, empty if it is not known."""
        return self.names.get(name) or self.types.get(of_type, "")


def read(folder: str, graphs: Sequence[str], found: Iterable[ProfileFile], problems: dict[str, str]) -> Lines:
    """Return the lines.

    Args:
        folder: of the profile.
        graphs: further folders: graph files, dumps of ``npu-shim run --dump``, the JSON of ``npu-shim assess``.
        found: the files of the profile.
        problems: receives what is wrong with files.
    """
    made, tables_of_ops = Lines(), [*found, *(each for graph in graphs for each in files.find(graph))]
    for each in (each for each in tables_of_ops if each.kind == "lines"):
        for row in tables.read_rows(each.path, each.kind, problems)[0]:
            made.names[row["name"]] = row["line"]
    for graph in graphs:
        _dumped(graph, made, problems)
        _assessed(graph, made)
    originals = {op.name: op.originals or [] for op in graph_files.find([folder, *graphs], problems).ops.values()}
    for each in (each for each in tables_of_ops if each.kind == "fusion_op"):
        for row in tables.read_rows(each.path, each.kind, problems)[0]:
            originals[row["name"]] = [part.strip() for part in row["originals"].replace(";", ",").split(",")]
    for name, members in originals.items():
        line = next((made.names[member] for member in members if made.names.get(member)), "")
        if line:
            made.names.setdefault(name, line)
    return made


def _dumped(graph: str, made: Lines, problems: dict[str, str]) -> None:
    for step in reference.steps(graph).values():
        if os.path.exists(os.path.join(step, reference.INDEX)):
            for output in reference.read(step, problems).outputs:
                if output.line:
                    made.names.setdefault(output.op, output.line)


def _assessed(graph: str, made: Lines) -> None:
    """Add the lines of types that do not run on the device, which an assessment has."""
    for path in dumps_files.below(graph, (".json",)):
        try:
            if os.path.getsize(path) > _MOST_BYTES:
                continue  # a timeline
            with open(path, encoding="utf-8") as stream:
                assessment = json.load(stream)
            if assessment.get("tool") == _ASSESSMENT:
                rows = [row for one in assessment["graphs"] for row in one["operators"] if row["lines"]]
                made.types.update({row["op"]: row["lines"][0] for row in rows})
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue  # another JSON
