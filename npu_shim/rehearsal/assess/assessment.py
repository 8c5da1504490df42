"""Put the parts of an assessment together, as a plain dictionary (docs/assess.schema.json)."""

from __future__ import annotations

import collections
import re
from typing import Any, NamedTuple, Sequence

import npu_shim
from npu_shim import _tf, _tf_graph
from npu_shim.rehearsal.assess import kinds, memory, precision, work
from npu_shim.rehearsal.assess.capture import TRAIN, Capture, Captured
from npu_shim.rehearsal.assess.flat import Node, Shape
from npu_shim.rehearsal.assess.lines import lines_of
from npu_shim.rehearsal.assess.operators import DEVICE, INPUT, Lists
from npu_shim.rehearsal.assess.partition import Partition, partition
from npu_shim.rehearsal.assess.products import Product
from npu_shim.rehearsal.assess.sizes import elements, size_bytes

SCHEMA_VERSION = 1
_VARIABLES = frozenset({"VarHandleOp", "VariableV2", "Variable"})
_RARE_TYPES = ("float64", "string", "complex64", "complex128")
_ON_HOST_ANYWAY = frozenset({"Placeholder", "PlaceholderWithDefault", "Const", "NoOp"})
_MOST_LINES = 3
_NO_SHAPE = ("variant", "resource")
_SUMMARY = re.compile(r"^(\w*Summary\w*|WriteSummary)$")  # they run on the host after the device's part of a step


class Settings(NamedTuple):
    """Settings of the command line: the operators of the device, a product or None, and the script's folder."""

    lists: Lists
    product: Product | None
    folder: str


def assess(capture: Capture, settings: Settings, script: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Return the assessment of what a script runs until its first training step, and of that step."""
    _tf.logging.set_verbosity(_tf.logging.ERROR)  # TensorFlow's profiler calls deprecated functions
    graphs = [_graph(captured, settings) for captured in capture.graphs if _matters(captured)]
    before = len(capture.compiled)
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": "npu-shim assess",
        "tool_version": npu_shim.__version__,
        "script": script,
        "arguments": list(arguments),
        "tensorflow": _tf.tf.__version__,
        "ranks": 1,
        "operator_lists": settings.lists.source,
        "compiled_graphs": {
            "before_training": before,
            "assessed": len(graphs),
            "for_each_new_shape": sum(1 for graph in graphs if graph["dynamic_shapes"]),
        },
        "problems": [problem for graph in graphs for problem in _problems(graph)],
        "graphs": graphs,
    }


def _matters(captured: Captured) -> bool:
    """Return False for runs beside training that compute nothing large, as those of an Estimator's hooks."""
    assert captured.flat is not None
    return captured.kind == TRAIN or any(work.MATRIX.match(node.op) for node in captured.flat.nodes)


def _graph(captured: Captured, settings: Settings) -> dict[str, Any]:
    flat = captured.flat
    assert flat is not None
    nodes = flat.nodes
    kinds.rename(nodes)
    own = frozenset({"Npu"} | {node.op for node in nodes if kinds.COLLECTIVE.match(node.op)})
    lists = settings.lists._replace(device=settings.lists.device | own)
    trips = work.trips_of(flat)
    done = work.work_of(flat, trips)
    # a tf.function with an operator of the host always runs in parts
    mixed = bool(captured.parameters.get("mix_compile_mode")) or captured.session is None
    parts = partition(nodes, lists, mixed, int(captured.parameters.get("iterations_per_loop") or 1))
    where = {i: lines_of(nodes[i].source, settings.folder) for i in parts.host}
    found: dict[str, Any] = {
        "name": captured.name,
        "kind": captured.kind,
        "line": captured.line,
        "nodes": len(nodes),
        "inputs": [{"name": name, "shape": _json_shape(shape)} for name, shape in sorted(captured.given.items())],
        "operators": _operators(nodes, done, lists, settings.folder),
        "partition": _partition(nodes, parts, where, mixed),
        "dynamic_shapes": _dynamic(nodes, settings.folder),
        "dtypes": _dtypes(nodes, settings.folder),
        "collectives": _collectives(nodes),
        "variables": _variables(nodes),
        "memory": memory.peak(nodes, trips)._asdict(),
        "work": _work(nodes, done, trips),
        "precision": _precision(nodes, done, lists, captured.parameters),
        "roofline": None,
    }
    found["memory"]["largest"] = [{"name": name, "bytes": size} for name, size in found["memory"]["largest"]]
    if settings.product is not None:
        found["roofline"] = _roofline(nodes, done, found, settings.product)
    return found


def _operators(nodes: Sequence[Node], done: work.Work, lists: Lists, folder: str) -> list[dict[str, Any]]:
    by_type: dict[str, list[int]] = collections.defaultdict(list)
    for i, node in enumerate(nodes):
        by_type[node.op].append(i)
    rows = []
    for op, places in by_type.items():
        status = DEVICE if op in _ON_HOST_ANYWAY else lists.status(op)
        rows.append(
            {
                "op": op,
                "count": len(places),
                "status": status,
                "flops": sum(done.flops[i] for i in places),
                "bytes": sum(done.bytes[i] for i in places),
                "lines": _lines(nodes, places, folder) if status not in (DEVICE, INPUT) else [],
            }
        )
    return sorted(rows, key=lambda row: (-row["flops"], -row["count"], row["op"]))


def _lines(nodes: Sequence[Node], places: Sequence[int], folder: str) -> list[str]:
    """Return the innermost lines of the script that create some nodes, the most frequent first."""
    counted = collections.Counter(line for i in places for line in lines_of(nodes[i].source, folder)[:1])
    return [line for line, _ in counted.most_common(_MOST_LINES)]


def _partition(nodes: Sequence[Node], parts: Partition, where: dict[int, list[str]], mixed: bool) -> dict[str, Any]:
    rows: dict[str, list[int]] = collections.defaultdict(list)
    for i in parts.host:
        rows[nodes[i].op].append(i)
    pulled = set(parts.pulled)
    host = [
        {
            "op": op,
            "count": len(places),
            "pulled": sum(1 for i in places if i in pulled),
            "cpu": _tf_graph.has_cpu_kernel(op),
            "lines": list(dict.fromkeys(line for i in places for line in where[i][:1]))[:_MOST_LINES],
        }
        for op, places in rows.items()
    ]
    return {
        "host": sorted(host, key=lambda row: (-int(str(row["count"])), str(row["op"]))),
        "clusters": parts.clusters,
        "outside_largest": parts.cut,
        "loops": parts.loops,
        "mix_compile_mode": mixed,
    }


def _dynamic(nodes: Sequence[Node], folder: str) -> list[dict[str, Any]]:
    """Return the operators that bring sizes into the graph that it does not know, with the lines that create them.

    An operator whose inputs, or what computes its shape, are open already brings in nothing new.
    """
    rows: list[dict[str, Any]] = []
    follows = [False] * len(nodes)
    for i in memory.order(nodes):
        node = nodes[i]
        opens = [k for k, shape in enumerate(node.declared) if _is_open(shape) and node.dtypes[k] not in _NO_SHAPE]
        follows[i] = any(
            follows[s] or (_is_open(nodes[s].declared[k]) and nodes[s].dtypes[k] not in _NO_SHAPE)
            for s, k in node.inputs
        )
        if opens and not follows[i] and node.op not in _VARIABLES and node.op != "BroadcastGradientArgs":
            now = node.shapes[opens[0]]
            rows.append(
                {
                    "op": node.op,
                    "name": node.name,
                    "shape": _json_shape(node.declared[opens[0]]),
                    "in_this_run": None if _is_open(now) else _json_shape(now),
                    "lines": lines_of(node.source, folder),
                }
            )
    return rows


def _is_open(shape: Shape) -> bool:
    return elements(shape) is None


def _dtypes(nodes: Sequence[Node], folder: str) -> list[dict[str, Any]]:
    rows = []
    for dtype in _RARE_TYPES:
        places = [i for i, node in enumerate(nodes) if dtype in node.dtypes and not _is_small_constant(node)]
        if places:
            ops = collections.Counter(nodes[i].op for i in places)
            rows.append(
                {
                    "dtype": dtype,
                    "tensors": sum(nodes[i].dtypes.count(dtype) for i in places),
                    "operators": [op for op, _ in ops.most_common()],
                    "lines": _lines(nodes, places, folder),
                }
            )
    return rows


def _is_small_constant(node: Node) -> bool:
    """Return True for text in constants: names of files and summaries, messages of assertions."""
    return node.op == "Const" and node.dtypes == ["string"]


def _collectives(nodes: Sequence[Node]) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for node in nodes:
        if kinds.COLLECTIVE.match(node.op):
            row = rows.setdefault(node.op, {"op": node.op, "count": 0, "bytes": 0})
            row["count"] += 1
            row["bytes"] += sum(size_bytes(dtype, shape) or 0 for dtype, shape in zip(node.dtypes, node.shapes))
    return list(rows.values())


def _variables(nodes: Sequence[Node]) -> dict[str, Any]:
    rows = []
    for node in nodes:
        if node.op in _VARIABLES:
            shape, dtype = _variable_type(node)
            rows.append({"name": _variable_name(node), "shape": _json_shape(shape), "dtype": dtype,
                         "bytes": size_bytes(dtype, shape) or 0})  # fmt: skip
    largest = sorted(rows, key=lambda row: -int(str(row["bytes"])))[:5]
    return {"count": len(rows), "bytes": sum(int(str(row["bytes"])) for row in rows), "largest": largest}


def _variable_type(node: Node) -> Any:
    if node.op != "VarHandleOp":
        return node.shapes[0], node.dtypes[0]
    attributes = node.definition.attr
    shape = _tf.tf.TensorShape(attributes["shape"].shape)
    known = shape.rank is not None and shape.is_fully_defined()
    return tuple(shape.as_list()) if known else None, _tf.tf.as_dtype(attributes["dtype"].type).name


def _variable_name(node: Node) -> str:
    shared = node.definition.attr["shared_name"].s.decode() if "shared_name" in node.definition.attr else ""
    return shared.partition(":")[0] or node.name


def _work(nodes: Sequence[Node], done: work.Work, trips: dict[str, int]) -> dict[str, Any]:
    loops = [node.name for node in nodes if node.op in ("While", "StatelessWhile")]
    loops += sorted(
        {node.definition.attr["frame_name"].s.decode() for node in nodes if node.op in ("Enter", "RefEnter")}
    )
    return {
        "flops": sum(done.flops),
        "matrix_flops": sum(n for n, node in zip(done.flops, nodes) if work.MATRIX.match(node.op)),
        "bytes": sum(done.bytes),
        "by_profiler": done.by_profiler,
        "unknown": [{"op": op, "why": why} for op, why in sorted(done.unknown.items())],
        "loops": [{"name": name, "runs": trips.get(name)} for name in loops],
    }


def _precision(nodes: Sequence[Node], done: work.Work, lists: Lists, parameters: dict[str, Any]) -> dict[str, Any]:
    half = precision.reduced(nodes, lists)
    mode = parameters.get("precision_mode_v2") or parameters.get("precision_mode") or b""
    matrix = [(n, is_half) for n, node, is_half in zip(done.flops, nodes, half) if work.MATRIX.match(node.op)]
    total = sum(n for n, _ in matrix)
    own = [
        i for i, node in enumerate(nodes) if "float32" in node.dtypes and node.op not in _VARIABLES | _ON_HOST_ANYWAY
    ]
    return {
        "mode": mode.decode() if isinstance(mode, bytes) else str(mode),
        "reduced": _counts(nodes, [i for i in own if half[i]]),
        "kept": _counts(nodes, [i for i in own if not half[i]]),
        "matrix_share": sum(n for n, is_half in matrix if is_half) / total if total else 0.0,
    }


def _counts(nodes: Sequence[Node], places: Sequence[int]) -> list[dict[str, Any]]:
    return [{"op": op, "count": n} for op, n in collections.Counter(nodes[i].op for i in places).most_common()]


def _roofline(nodes: Sequence[Node], done: work.Work, found: dict[str, Any], product: Product) -> dict[str, Any]:
    """Return a bound on the time of a step, and the sum over operators that each read and write memory."""
    compute = found["work"]["matrix_flops"] / product.flops
    inputs = sum(
        size_bytes(dtype, shape) or 0
        for node in nodes
        if node.op in ("Placeholder", "IteratorGetNext")
        for dtype, shape in zip(node.dtypes, node.shapes)
    )
    moved = (2 * found["variables"]["bytes"] + inputs) / product.bandwidth
    each = sum(
        max(flops / product.flops if work.MATRIX.match(node.op) else 0.0, size / product.bandwidth)
        for flops, size, node in zip(done.flops, done.bytes, nodes)
    )
    return {
        "product": product.name,
        "source": product.source,
        "bound_seconds": max(compute, moved),
        "bound_by": "matrix unit" if compute >= moved else "memory",
        "operators_seconds": each,
        "memory_share": (found["memory"]["peak"] + found["variables"]["bytes"]) / product.memory
        if product.memory
        else None,
    }


def _problems(graph: dict[str, Any]) -> list[dict[str, Any]]:
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


def _json_shape(shape: Shape) -> Any:
    return None if shape is None else list(shape)
