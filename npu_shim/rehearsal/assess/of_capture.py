"""Assess the graphs that a script runs until its first training step."""

from __future__ import annotations

from typing import Iterator, NamedTuple, Sequence

from npu_shim._tensorflow import tf_api
from npu_shim.data.pipeline_resources import pipeline_resources
from npu_shim.distributed.ranktable.model import RankTable
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
from npu_shim.rehearsal.assess.capture import BY_ESTIMATOR, BY_KERAS, TRAIN, Capture, Captured
from npu_shim.rehearsal.assess.estimates import mixed_precision_of, roofline_of, work_of_step
from npu_shim.rehearsal.assess.inventory import (
    collective_rows,
    dynamic_shape_rows,
    operator_rows,
    rare_type_rows,
    shape_to_json,
    summary_of_host_parts,
    variables_summary,
)
from npu_shim.rehearsal.assess.lines import creating_lines
from npu_shim.rehearsal.assess.loops import loop_trip_counts, updates_variable
from npu_shim.rehearsal.assess.operators import Lists
from npu_shim.rehearsal.assess.partition import partition_nodes
from npu_shim.rehearsal.assess.problems import problems_of_graph
from npu_shim.rehearsal.assess.products import Product
from npu_shim.rehearsal.assess.step_nodes import nodes_of_step
from npu_shim.rehearsal.assess.training_ops import ops_with_training_functions
from npu_shim.rehearsal.predict.configuration_edit import ESTIMATOR, KERAS_SESSION, SESSION, trainer_of_function
from npu_shim.rehearsal.predict.of_graph import step_on_device
from npu_shim.rehearsal.predict.op_times import Processor
from npu_shim.rehearsal.predict.plan import predict_training


class Settings(NamedTuple):
    """Settings of the command line.

    Attributes:
        lists: the operators of the device.
        product: whose figures bound the time of a step; None for no bound.
        folder: of the script.
        processor: for which steps are predicted; None for no prediction.
        ranks: of the predicted job.
        table: its rank table; None without one.
    """

    lists: Lists
    product: Product | None
    folder: str
    processor: Processor | None = None
    ranks: int = 1
    table: RankTable | None = None


def assess_capture(capture: Capture, settings: Settings, script: str, arguments: Sequence[str]) -> Assessment:
    """Return the assessment of what a script runs until its first training step, and of that step."""
    tf_api.logging.set_verbosity(tf_api.logging.ERROR)  # TensorFlow's profiler calls deprecated functions
    graphs = [_assess_graph(captured, settings) for captured in capture.graphs if _is_worth_assessing(captured)]
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
            *(problem for graph in graphs for problem in problems_of_graph(graph)),
            *_input_pipeline_problems(capture, settings.folder),
            *_dataset_problems(capture, settings.folder),
        ],
        graphs=graphs,
    )


def _input_pipeline_problems(capture: Capture, folder: str) -> Iterator[Problem]:
    """Yield the variables and tables that the input pipeline of a session reads on the host."""
    seen: set[str] = set()
    for captured in capture.graphs:
        if captured.session is not None:
            mixed = bool(captured.parameters.get("mix_compile_mode"))
            for op, reason in pipeline_resources(captured.graph.get_operations(), mixed).items():
                if op.name not in seen:
                    seen.add(op.name)
                    yield Problem(captured.name, f"{op.type} {op.name}", reason, creating_lines(op, folder)[:1])


def _dataset_problems(capture: Capture, folder: str) -> Iterator[Problem]:
    """Yield the loops over datasets in functions: TensorFlow makes their bodies functions of the dataset."""
    why = (
        "runs on the host: its function holds the training step, as that of `for batch in dataset` in a tf.function "
        "does. Loop over the dataset outside the tf.function"
    )
    for captured in capture.graphs:
        if captured.kind == TRAIN and not _trains_itself(captured):
            nodes = captured.flat.nodes if captured.flat is not None else []
            for op in ops_with_training_functions([node.source for node in nodes]):
                yield Problem(captured.name, op.type, why, creating_lines(op, folder)[:1])


def _trains_itself(captured: Captured) -> bool:
    """Return True if the nodes of a training step train themselves, and not functions of its datasets."""
    return captured.flat is not None and any(map(updates_variable, captured.flat.nodes))


def _is_worth_assessing(captured: Captured) -> bool:
    """Return False for runs beside training that compute nothing large, as those of an Estimator's hooks."""
    assert captured.flat is not None
    return captured.kind == TRAIN or any(work.MATRIX.match(node.op) for node in captured.flat.nodes)


def _trainer(captured: Captured) -> str:
    if captured.session is None:
        return trainer_of_function(captured.name)
    return {BY_ESTIMATOR: ESTIMATOR, BY_KERAS: KERAS_SESSION}.get(captured.caller, SESSION)


def _assess_graph(captured: Captured, settings: Settings) -> Graph:
    flat = captured.flat
    assert flat is not None
    nodes = flat.nodes
    device_forms.set_device_op_types(nodes)
    own = frozenset({"Npu"} | {node.op for node in nodes if device_forms.COLLECTIVE.match(node.op)})
    lists = settings.lists._replace(device=settings.lists.device | own)
    trips = loop_trip_counts(nodes)
    done = work.work_of_nodes(flat, trips)
    # a tf.function with an operator of the host always runs in parts
    mixed = bool(captured.parameters.get("mix_compile_mode")) or captured.session is None
    parts = partition_nodes(nodes, lists, mixed, int(captured.parameters.get("iterations_per_loop") or 1))
    peak = memory.peak_memory(nodes, trips)
    where = {i: creating_lines(nodes[i].source, settings.folder) for i in parts.host}
    work_part, variables = work_of_step(nodes, done, trips), variables_summary(nodes)
    activations = Activations(peak.peak, peak.at, peak.unknown, [LargeTensor(*tensor) for tensor in peak.largest])
    prediction = None
    if settings.processor is not None and captured.kind == TRAIN and _trains_itself(captured):
        own_nodes = nodes_of_step(flat, parts.host, trips, done)
        step = step_on_device(
            own_nodes, lists, captured.parameters, settings.processor, settings.folder, _trainer(captured)
        )
        prediction = predict_training(step, captured.input_rate, settings.ranks, settings.table)
    return Graph(
        name=captured.name,
        kind=captured.kind,
        line=captured.line,
        nodes=len(nodes),
        inputs=[Input(name, shape_to_json(shape)) for name, shape in sorted(captured.given.items())],
        operators=operator_rows(nodes, done, lists, settings.folder),
        partition=summary_of_host_parts(nodes, parts, where, mixed),
        dynamic_shapes=dynamic_shape_rows(nodes, settings.folder, peak.unknown_nodes),
        dtypes=rare_type_rows(nodes, settings.folder),
        collectives=collective_rows(nodes),
        variables=variables,
        memory=activations,
        work=work_part,
        precision=mixed_precision_of(nodes, done, lists, captured.parameters),
        roofline=settings.product and roofline_of(nodes, done, work_part, variables.bytes, peak.peak, settings.product),
        prediction=prediction,
    )
