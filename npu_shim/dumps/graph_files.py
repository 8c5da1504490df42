"""Graphs that the engine writes: ``ge_proto*.txt`` and ``ge_onnx*.pbtxt``, both protobuf text.

The text is read block by block from a mapped file, and only the block of one operator is kept: files with constants
have hundreds of megabytes. Of all stages, those that are built for the device count, which have the operators of the
dumps.
"""

from __future__ import annotations

import mmap
import os
import re
from dataclasses import dataclass, field
from typing import Any, Iterator

from npu_shim.dumps import files

_TOKEN = re.compile(  # a key and its value, a key and the begin of its block, or the end of a block
    rb"\s*(?:(?P<key>[\w.]+)\s*:?\s*(?:(?P<value>(?<=[:\s])(?:\"(?:[^\"\\\n]|\\.)*\"|[\w.+-]+|\[[^\]]*\]))|[{<])|[}>])[;,]?"
)
_ORIGINALS = "_datadump_original_op_names"
_OF_OUTPUT = ("_datadump_origin_name", "_datadump_origin_output_index", "_datadump_origin_format", "origin_format")
_MOST_DEPTH, _MOST_OUTPUTS = 64, 1024
Block = dict  # key -> list of texts and blocks


@dataclass
class Output:
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
        order: in which it runs.
    """

    name: str
    op_type: str
    inputs: list[tuple[str, int]] = field(default_factory=list)
    originals: list[str] | None = None
    outputs: list[Output] = field(default_factory=list)
    order: int = 0


@dataclass
class Graph:
    """The operators of all graphs by their names, and the files that they are from."""

    ops: dict[str, GraphOp] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)


def find(folders: list[str], problems: dict[str, str]) -> Graph:
    """Read the graph files below folders; what is wrong with one is added to ``problems``."""
    paths = [path for folder in folders for path in files.below(folder, (".txt", ".pbtxt"))]
    paths = [path for path in paths if os.path.basename(path).startswith(("ge_proto", "ge_onnx"))]
    built = [path for path in paths if "Build" in os.path.basename(path)]
    found = Graph()
    for path in built or paths[-1:]:
        try:
            ops = list(read(path))
        except (ValueError, OSError) as error:
            problems[path] = f"it is no graph of the engine: {error}. Copy the file again"
            continue
        found.paths.append(path)
        for op in ops:
            op.order = len(found.ops)
            found.ops.setdefault(op.name, op)
    return found


def read(path: str) -> Iterator[GraphOp]:
    """Return the operators of a graph file in the order of the file.

    Raises:
        ValueError: the file is no such text.
    """
    with open(path, "rb") as stream:
        if not os.fstat(stream.fileno()).st_size:
            raise ValueError("it is empty")
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as raw:
            yield from (_op(block) for block in _blocks(raw) if _one(block, "name"))


def _blocks(raw: mmap.mmap) -> Iterator[Block]:
    """Return the blocks "op" of ge_proto and "node" of ge_onnx as they end."""
    open_blocks: list[tuple[str, Block]] = [("", {})]
    inside = place = 0  # number of open blocks from the one of an operator on
    while place < len(raw):
        token = _TOKEN.match(raw, place)
        if not token:
            if raw[place:].strip():
                raise ValueError(f"byte {place} is {raw[place : place + 1]!r}")
            break
        place, key, value = token.end(), (token["key"] or b"").decode(), token["value"]
        if value is not None:
            if inside:
                open_blocks[-1][1].setdefault(key, []).append(_text(value))
        elif key:
            if len(open_blocks) > _MOST_DEPTH:
                raise ValueError(f"byte {place}: more than {_MOST_DEPTH} blocks are open")
            open_blocks.append((key, {}))
            inside += bool(inside) or key in ("op", "node")
        else:
            if len(open_blocks) == 1:
                raise ValueError(f"byte {place}: a block ends that was not open")
            name, block = open_blocks.pop()
            if inside == 1:
                yield block
            elif inside:
                open_blocks[-1][1].setdefault(name, []).append(block)
            inside -= bool(inside)
    if len(open_blocks) > 1:
        raise ValueError(f"{len(open_blocks) - 1} blocks are open at its end")


def _text(value: bytes) -> str:
    if value[:1] == b'"':  # with the escapes of C, as Python has them
        value = value[1:-1].decode("unicode_escape").encode("latin-1")
    return value.decode("utf-8", "replace")


def _op(block: Block) -> GraphOp:
    attributes = _attributes(block)
    inputs = [str(text).rpartition(":") for text in block.get("input", [])]
    made = GraphOp(_one(block, "name"), (_one(block, "type") or _one(block, "op_type")).split(":")[-1])
    made.inputs = [(name, int(index)) for name, _, index in inputs if name and index.isdigit()]
    if _ORIGINALS in attributes:
        made.originals = [name for name in attributes[_ORIGINALS] if name]
    described = [_attributes(each) for each in block.get("output_desc", [])]  # in ge_proto
    for place in range(max(0, min(_MOST_OUTPUTS, _int(attributes.get("output_desc_nums"))))):  # in ge_onnx
        names = [f"output_desc_attr_{name}:{place}" for name in _OF_OUTPUT]
        described.append(dict(zip(_OF_OUTPUT, (attributes.get(name, []) for name in names))))
        described[-1].setdefault("", attributes.get(f"output_desc_origin_layout:{place}", []))
    for each in described:
        name, index, *layouts = ((each.get(name) or [""])[-1] for name in (*_OF_OUTPUT, ""))
        made.outputs.append(Output(name, _int([index]), next(filter(None, layouts), "")))
    return made


def _attributes(block: Any) -> dict[str, list[str]]:
    """Return the texts and numbers of the attributes of an operator or output, by name."""
    found = {}
    for each in [*block.get("attr", []), *block.get("attribute", [])] if isinstance(block, dict) else ():
        if isinstance(each, dict):
            value = next((value for value in each.get("value", []) if isinstance(value, dict)), each)
            value = next((inner for inner in value.get("list", []) if isinstance(inner, dict)), value)
            texts = [text for kind in ("s", "i", "strings") for text in value.get(kind, []) if isinstance(text, str)]
            found[_one(each, "key") or _one(each, "name")] = texts
    return found


def _one(block: Block, key: str) -> str:
    found = block.get(key) or [""]
    return found[-1] if isinstance(found[-1], str) else ""


def _int(texts: list[str] | None) -> int:
    return int(texts[-1]) if texts and re.fullmatch("[0-9]{1,9}", texts[-1]) else -1
