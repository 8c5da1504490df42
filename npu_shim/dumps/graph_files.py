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

_TOKEN = re.compile(
    rb'\s+|\#[^\n]*|(?P<text>"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')|(?P<word>[A-Za-z0-9_.+\-]+)|(?P<mark>[{}<>:;,\[\]])'
)
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", re.S)
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}
_ORIGINALS = "_datadump_original_op_names"
_MOST_DEPTH = 64
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
            for kind, block in _blocks(raw):
                if _one(block, "name"):
                    yield _of_proto(block) if kind == "op" else _of_onnx(block)


def _blocks(raw: Any) -> Iterator[tuple[str, Block]]:
    """Return the blocks "op" of ge_proto and "node" of ge_onnx as they end."""
    open_blocks: list[tuple[str, Block]] = [("", {})]
    inside = 0  # number of open blocks from the one of an operator on
    key = ""
    place = 0
    while place < len(raw):
        token = _TOKEN.match(raw, place)
        if not token:
            raise ValueError(f"byte {place} is {raw[place : place + 1]!r}")
        place = token.end()
        text, word, mark = token.group("text", "word", "mark")
        if mark in (b"{", b"<"):
            if len(open_blocks) > _MOST_DEPTH:
                raise ValueError(f"byte {place}: more than {_MOST_DEPTH} blocks are open")
            open_blocks.append((key, {}))
            inside += bool(inside) or key in ("op", "node")
            key = ""
        elif mark in (b"}", b">"):
            if len(open_blocks) == 1:
                raise ValueError(f"byte {place}: a block ends that was not open")
            name, block = open_blocks.pop()
            if inside == 1:
                yield name, block
            elif inside:
                open_blocks[-1][1].setdefault(name, []).append(block)
            inside -= bool(inside)
        elif word is not None and not key:
            key = word.decode()
        elif word is not None or text is not None:
            if inside:
                value = word.decode() if word is not None else _unescaped(text)
                open_blocks[-1][1].setdefault(key, []).append(value)
            key = ""
    if len(open_blocks) > 1:
        raise ValueError(f"{len(open_blocks) - 1} blocks are open at its end")


def _unescaped(text: bytes) -> str:
    def one(found: re.Match) -> bytes:
        what = found.group(1)
        if what[:1] == b"x" and len(what) > 1:
            return bytes([int(what[1:], 16)])
        return bytes([int(what, 8) & 255]) if what.isdigit() else _ESCAPES.get(what, what)

    return _ESCAPE.sub(one, text[1:-1]).decode("utf-8", "replace")


def _of_proto(block: Block) -> GraphOp:
    attributes = _attributes(block)
    made = GraphOp(_one(block, "name"), _one(block, "type"), _inputs(block))
    if _ORIGINALS in attributes:
        made.originals = [name for name in _list(_block(attributes[_ORIGINALS], "list"), "s") if name]
    for output in _list(block, "output_desc"):
        of_output = _attributes(output)

        def value(name: str, kind: str, of_output: dict[str, Block] = of_output) -> str:
            return _one(of_output.get(name, {}), kind)

        layout = value("_datadump_origin_format", "s") or value("origin_format", "s")
        index = value("_datadump_origin_output_index", "i")
        made.outputs.append(Output(value("_datadump_origin_name", "s"), _int(index), layout))
    return made


def _of_onnx(block: Block) -> GraphOp:
    attributes = {_one(each, "name"): each for each in _list(block, "attribute") if isinstance(each, dict)}
    made = GraphOp(_one(block, "name"), _one(block, "op_type").split(":")[-1], _inputs(block))
    if _ORIGINALS in attributes:
        made.originals = [name for name in _list(attributes[_ORIGINALS], "strings") if name]
    for place in range(max(0, min(1024, _int(_one(attributes.get("output_desc_nums", {}), "i"))))):

        def value(name: str, kind: str, place: int = place) -> str:
            return _one(attributes.get(f"output_desc_{name}:{place}", {}), kind)

        layout = value("attr__datadump_origin_format", "s") or value("attr_origin_format", "s")
        index = value("attr__datadump_origin_output_index", "i")
        layout = layout or value("origin_layout", "s")
        made.outputs.append(Output(value("attr__datadump_origin_name", "s"), _int(index), layout))
    return made


def _inputs(block: Block) -> list[tuple[str, int]]:
    found = []
    for text in _list(block, "input"):
        name, _, index = text.rpartition(":") if isinstance(text, str) else ("", "", "")
        if name and index.isdigit():
            found.append((name, int(index)))
    return found


def _attributes(block: Block) -> dict[str, Block]:
    return {_one(each, "key"): _block(each, "value") for each in _list(block, "attr") if isinstance(each, dict)}


def _list(block: Any, key: str) -> list[Any]:
    return block.get(key, []) if isinstance(block, dict) else []


def _block(block: Any, key: str) -> Block:
    found = _list(block, key)
    return found[-1] if found and isinstance(found[-1], dict) else {}


def _one(block: Any, key: str) -> str:
    found = _list(block, key)
    return found[-1] if found and isinstance(found[-1], str) else ""


def _int(text: str) -> int:
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else -1
