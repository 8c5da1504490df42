"""Assess the graphs that a script runs until its first training step."""

from __future__ import annotations

from typing import Iterator, NamedTuple, Sequence

from npu_shim._tensorflow import tf_api
from npu_shim.data.pipeline_resources import pipeline_resources
from npu_shim.rehearsal.assess import device_forms, memory, work
from npu_shim.rehearsal.assess.assessment import (
    Activations,
    Assessment,
    CompiledGraphs,
    Graph,
    Input,
    LargeTensor,
    Problem,
)
from npu_shim.rehearsal.assess.capture import TRAIN, Capture, Captured
from npu_shim.rehearsal.assess.estimates import precision_of, roofline_of, work_of_step
from npu_shim.rehearsal.assess.inventory import (
    collectives_of,
    cut_of,
    dynamic_shapes,
    json_shape,
    operators_of,
    rare_types_of,
    variables_of,
)
from npu_shim.rehearsal.assess.lines import lines_of
from npu_shim.rehearsal.assess.operators import Lists
from npu_shim.rehearsal.assess.partition import partition
from npu_shim.rehearsal.assess.problems import problems_of
from npu_shim.rehearsal.assess.products import Product


class Settings(NamedTuple):
    """Settings of the command line: the operators of the device, a product or None, and the script's folder."""

    lists: Lists
    product: Product | None
    folder: str


def assess(capture: Capture, settings: Settings, script: str, arguments: Sequence[str]) -> Assessment:
    """Return the assessment of what a script runs until its first training step, and of that step."""
    tf_api.logging.set_verbosity(tf_api.logging.ERROR)  # TensorFlow's profiler calls deprecated functions
    graphs = [_graph(captured, settings) for captured in capture.graphs if _matters(captured)]
    return Assessment(
        script=script,
        arguments=list(arguments),
        tensorflow=tf_api.tf.__version__,
        ranks=1,
        operator_lists=settings.lists.source,
        compiled_graphs=CompiledGraphs(
            before_training=len(capture.compiled),
            assessed=len(graphs),
            for_each_new_shape=sum(1 for graph in graphs if graph.dynamic_shapes),
        ),
        problems=[
            *(problem for graph in graphs for problem in problems_of(graph)),
            *_pipeline_problems(capture, settings.folder),
        ],
        graphs=graphs,
    )


def _pipeline_problems(capture: Capture, folder: str) -> Iterator[Problem]:
    """Yield the variables and tables that the input pipeline of a session reads on the host."""
    seen: set[str] = set()
    for captured in capture.graphs:
        if captured.session is not None:
            mixed = bool(captured.parameters.get("mix_compile_mode"))
            for op, reason in pipeline_resources(captured.graph.get_operations(), mixed).items():
                if op.name not in seen:
                    seen.add(op.name)
                    yield Problem(captured.name, f"{op.type} {op.name}", reason, lines_of(op, folder)[:1])


def _matters(captured: Captured) -> bool:
    """Return False for runs beside training that compute nothing large, as those of an Estimator's hooks."""
    assert captured.flat is not None
    return captured.kind == TRAIN or any(work.MATRIX.match(node.op) for node in captured.flat.nodes)


def _graph(captured: Captured, settings: Settings) -> Graph:
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
    peak = memory.peak(nodes, trips)
    where = {i: lines_of(nodes[i].source, settings.folder) for i in parts.host}
    work_part, variables = work_of_step(nodes, done, trips), variables_of(nodes)
    activations = Activations(peak.peak, peak.at, peak.unknown, [LargeTensor(*tensor) for tensor in peak.largest])
    return Graph(
        name=captured.name,
        kind=captured.kind,
        line=captured.line,
        nodes=len(nodes),
        inputs=[Input(name, json_shape(shape)) for name, shape in sorted(captured.given.items())],
        operators=operators_of(nodes, done, lists, settings.folder),
        partition=cut_of(nodes, parts, where, mixed),
        dynamic_shapes=dynamic_shapes(nodes, settings.folder, peak.unknown_nodes),
        dtypes=rare_types_of(nodes, settings.folder),
        collectives=collectives_of(nodes),
        variables=variables,
        memory=activations,
        work=work_part,
        precision=precision_of(nodes, done, lists, captured.parameters),
        roofline=settings.product and roofline_of(nodes, done, work_part, variables.bytes, peak.peak, settings.product),
    )
