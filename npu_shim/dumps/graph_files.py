"""Graphs that the engine writes: ``ge_proto*.txt`` and ``ge_onnx*.pbtxt``, both protobuf text.

The text has a line for each field, as protobuf prints it. It is read line by line, and only one operator is kept: files
with constants have hundreds of megabytes. Of all stages, those that are built for the device count, which have the
operators of the dumps.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Dict, Iterable, Iterator, List, NamedTuple

from npu_shim.dumps import files

_FIELD = re.compile(rb"([\w.]+)\s*:\s*(.*)")
_ORIGINALS = "_datadump_original_op_names"
_OF_OUTPUT = ("_datadump_origin_name", "_datadump_origin_output_index", "_datadump_origin_format", "origin_format")
_MOST_DEPTH, _MOST_OUTPUTS = 64, 1024
Texts = Dict[str, List[str]]  # of fields, whose keys begin with a dot, and of attributes


class Output(NamedTuple):
    """The op that an output of an operator stands for.

    Attributes:
        name: of the original op, empty if the graph does not say.
        output: of it, -1 if the graph does not say.
        layout: in the original graph.
    """

    name: str = ""
    output: int = -1
    layout: str = ""


@dataclass
class GraphOp:
    """An operator of a graph.

    Attributes:
        inputs: the operators and outputs that it takes, without control edges.
        originals: the ops that it was made from; None if the graph does not say, empty for one that the engine added.
    """

    name: str
    op_type: str
    inputs: list[tuple[str, int]]
    originals: list[str] | None = None
    outputs: list[Output] = field(default_factory=list)


OpsByDumpName = Dict[str, GraphOp]


def read_built_graphs_and_paths(folders: list[str], problems: files.Problems) -> tuple[OpsByDumpName, list[str]]:
    """Read the built graphs below folders, else the last graph file; what is wrong with one is added to ``problems``.

    Returns:
        The operators by their names as file names have them, in their order, and the files that they are from.
    """
    paths = [path for folder in folders for path in files.paths_below(folder, (".txt", ".pbtxt"))]
    paths = [path for path in paths if os.path.basename(path).startswith(("ge_proto", "ge_onnx"))]
    built = [path for path in paths if "Build" in os.path.basename(path)]
    ops: OpsByDumpName = {}
    read_paths = []
    for path in built or paths[-1:]:
        with files.collect_problem(problems, path, "it is no graph of the engine: {}. Copy the file again"):
            for op in list(read_graph_ops(path)):
                ops.setdefault(files.name_in_files(op.name), op)
            read_paths.append(path)
    return ops, read_paths


def read_graph_ops(path: str) -> Iterator[GraphOp]:
    """Return the operators of a graph file in the order of the file.

    Raises:
        ValueError: the file is no such text.
    """
    with open(path, "rb") as stream:
        yield from (_graph_op(*texts) for texts in _op_texts(stream) if _last_text(texts[0], ".name"))


def _op_texts(lines: Iterable[bytes]) -> Iterator[list[Texts]]:
    """Return the texts of each operator, "op" of ge_proto or "node" of ge_onnx, and then of its outputs, as it ends."""
    path: list[str] = []  # of open blocks
    texts: list[Texts] = []
    number = level = 0
    for number, line in enumerate(map(bytes.strip, lines), 1):
        field = _FIELD.fullmatch(line)
        if line.endswith(b"{") and len(path) < _MOST_DEPTH:
            path.append(line.strip(b" :{").decode())
            if not texts and path[-1] in ("op", "node"):
                texts, level = [{}], len(path)
            elif texts and path[level:] == ["output_desc"]:
                texts.append({})
        elif line == b"}" and path:
            path.pop()
            if texts and len(path) < level:
                yield texts
                texts = []
        elif line and not field:
            raise ValueError(f"line {number} in {len(path)} open blocks is {line[:40]!r}")
        elif texts and field:
            _add_text(texts, path[level:], field[1].decode(), field[2])
    if path or not number:
        raise ValueError(f"{len(path)} blocks are open at its end, after {number} lines")


def _add_text(texts: list[Texts], path: list[str], key: str, value: bytes) -> None:
    """Add a text of a block, whose path begins in the operator, to the fields or attributes that it belongs to."""
    if value[:1] == b'"':  # with the escapes of C, as Python has them
        value = value[1:-1].decode("unicode_escape").encode("latin-1")
    text, of = value.decode("utf-8", "replace"), texts[0]
    if path[:1] == ["output_desc"]:
        path, of = path[1:], texts[-1]
    if path in (["attr"], ["attribute"]) and key in ("key", "name"):
        of["."], of[text] = [text], []
    elif path and path[0] in ("attr", "attribute") and key in ("s", "i", "strings"):
        of.setdefault(_last_text(of, "."), []).append(text)
    elif not path:
        of.setdefault(f".{key}", []).append(text)


def _graph_op(op: Texts, *outputs: Texts) -> GraphOp:
    inputs = [text.rpartition(":") for text in op.get(".input", [])]
    graph_op = GraphOp(_last_text(op, ".name"), _last_text(op, ".type", ".op_type").split(":")[-1], [])
    graph_op.inputs = [(name, int(index)) for name, _, index in inputs if name and index.isdigit()]
    if _ORIGINALS in op:
        graph_op.originals = [name for name in op[_ORIGINALS] if name]
    described = [(of_output, "{}") for of_output in outputs]  # in ge_proto
    number = min(_MOST_OUTPUTS, _parse_index(_last_text(op, "output_desc_nums")))  # in ge_onnx
    described += [(op, f"output_desc_attr_{{}}:{place}") for place in range(number)]
    for texts, form in described:
        name, output, *layouts = map(form.format, _OF_OUTPUT)
        layout = _last_text(texts, *layouts, form.replace("attr_{}", "origin_layout"))
        graph_op.outputs.append(Output(_last_text(texts, name), _parse_index(_last_text(texts, output)), layout))
    return graph_op


def _last_text(texts: Texts, *keys: str) -> str:
    """Return the last text of the first key that has one, empty if none has."""
    return next((texts[key][-1] for key in keys if texts.get(key)), "")


def _parse_index(text: str) -> int:
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else -1
