"""Put the parts of an assessment together, as a plain dictionary (docs/assess.schema.json)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Sequence

from npu_shim._tensorflow import tf_api
from npu_shim.rehearsal.assess import device_forms, memory, work
from npu_shim.rehearsal.assess.capture import TRAIN, Capture, Captured
from npu_shim.rehearsal.assess.estimates import precision_part, roofline, work_part
from npu_shim.rehearsal.assess.inventory import (
    collectives_of,
    dtypes_of,
    dynamic_shapes,
    json_shape,
    operators_of,
    partition_of,
    variables_of,
)
from npu_shim.rehearsal.assess.lines import lines_of
from npu_shim.rehearsal.assess.operators import Lists
from npu_shim.rehearsal.assess.partition import partition
from npu_shim.rehearsal.assess.problems import problems_of
from npu_shim.rehearsal.assess.products import Product
from npu_shim.rehearsal.reports import about

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject


class Settings(NamedTuple):
    """Settings of the command line: the operators of the device, a product or None, and the script's folder."""

    lists: Lists
    product: Product | None
    folder: str


def assess(capture: Capture, settings: Settings, script: str, arguments: Sequence[str]) -> JsonObject:
    """Return the assessment of what a script runs until its first training step, and of that step."""
    tf_api.logging.set_verbosity(tf_api.logging.ERROR)  # TensorFlow's profiler calls deprecated functions
    graphs = [_graph(captured, settings) for captured in capture.graphs if _matters(captured)]
    before = len(capture.compiled)
    return {
        **about("assess"),
        "script": script,
        "arguments": list(arguments),
        "tensorflow": tf_api.tf.__version__,
        "ranks": 1,
        "operator_lists": settings.lists.source,
        "compiled_graphs": {
            "before_training": before,
            "assessed": len(graphs),
            "for_each_new_shape": sum(1 for graph in graphs if graph["dynamic_shapes"]),
        },
        "problems": [problem for graph in graphs for problem in problems_of(graph)],
        "graphs": graphs,
    }


def _matters(captured: Captured) -> bool:
    """Return False for runs beside training that compute nothing large, as those of an Estimator's hooks."""
    assert captured.flat is not None
    return captured.kind == TRAIN or any(work.MATRIX.match(node.op) for node in captured.flat.nodes)


def _graph(captured: Captured, settings: Settings) -> JsonObject:
    flat = captured.flat
    assert flat is not None
    nodes = flat.nodes
    device_forms.rename(nodes)
    own = frozenset({"Npu"} | {node.op for node in nodes if device_forms.COLLECTIVE.match(node.op)})
    lists = settings.lists._replace(device=settings.lists.device | own)
    trips = work.trips_of(flat)
    done = work.work_of(flat, trips)
    # a tf.function with an operator of the host always runs in parts
    mixed = bool(captured.parameters.get("mix_compile_mode")) or captured.session is None
    parts = partition(nodes, lists, mixed, int(captured.parameters.get("iterations_per_loop") or 1))
    activations = memory.peak(nodes, trips)
    where = {i: lines_of(nodes[i].source, settings.folder) for i in parts.host}
    graph: JsonObject = {
        "name": captured.name,
        "kind": captured.kind,
        "line": captured.line,
        "nodes": len(nodes),
        "inputs": [{"name": name, "shape": json_shape(shape)} for name, shape in sorted(captured.given.items())],
        "operators": operators_of(nodes, done, lists, settings.folder),
        "partition": partition_of(nodes, parts, where, mixed),
        "dynamic_shapes": dynamic_shapes(nodes, settings.folder, activations.unknown_nodes),
        "dtypes": dtypes_of(nodes, settings.folder),
        "collectives": collectives_of(nodes),
        "variables": variables_of(nodes),
        "memory": {
            "peak": activations.peak,
            "at": activations.at,
            "unknown": activations.unknown,
            "largest": [{"name": name, "bytes": size} for name, size in activations.largest],
        },
        "work": work_part(nodes, done, trips),
        "precision": precision_part(nodes, done, lists, captured.parameters),
        "roofline": None,
    }
    if settings.product is not None:
        graph["roofline"] = roofline(nodes, done, graph, settings.product)
    return graph
